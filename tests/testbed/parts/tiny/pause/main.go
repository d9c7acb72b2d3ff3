// Command pause does nothing but hold its namespaces and reap orphans: pid 1 of pods and of the node.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGCHLD)
	for {
		// Reap before waiting: children may have ended before the signals were watched.
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 && err != syscall.EINTR {
				break
			}
		}
		if <-signals != syscall.SIGCHLD {
			return
		}
	}
}
