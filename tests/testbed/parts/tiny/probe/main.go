// Command probe looks at a cluster from inside a pod; its exit status is its answer.
//
//	probe resolve NAME        print the name's addresses
//	probe connect HOST:PORT   connect within two seconds
//	probe listen PORT         accept connections for ever
//	probe write FILE          write a line
package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

func run(command, argument string) error {
	switch command {
	case "resolve":
		addresses, err := net.LookupHost(argument)
		fmt.Println(strings.Join(addresses, " "))
		return err
	case "connect":
		connection, err := net.DialTimeout("tcp", argument, 2*time.Second)
		if err == nil {
			err = connection.Close()
		}
		return err
	case "listen":
		listener, err := net.Listen("tcp", ":"+argument)
		if err != nil {
			return err
		}
		for {
			connection, err := listener.Accept()
			if err != nil {
				return err
			}
			connection.Close()
		}
	case "write":
		return os.WriteFile(argument, []byte("written\n"), 0o644)
	}
	return errors.New("unknown command " + command)
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: probe resolve|connect|listen|write ARGUMENT")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
