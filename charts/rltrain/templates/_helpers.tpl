{{- define "rltrain.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 53 | trimSuffix "-" }}
{{- end }}

{{- define "rltrain.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 53 | trimSuffix "-" }}
{{- else if contains (include "rltrain.name" .) .Release.Name }}
{{- .Release.Name | trunc 53 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "rltrain.name" .) | trunc 53 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "rltrain.selector" -}}
app.kubernetes.io/name: {{ include "rltrain.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Of every object; the chart's own can't be replaced. */}}
{{- define "rltrain.labels" -}}
{{- $own := include "rltrain.selector" . | fromYaml }}
{{- $_ := set $own "app.kubernetes.io/version" .Chart.AppVersion }}
{{- $_ := set $own "app.kubernetes.io/managed-by" .Release.Service }}
{{- $_ := set $own "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_") }}
{{- merge $own .Values.commonLabels | toYaml }}
{{- end }}

{{/* Labels and annotations of an object whose annotations are all its users'. */}}
{{- define "rltrain.metadata" -}}
labels: {{- include "rltrain.labels" . | nindent 2 }}
{{- with .Values.commonAnnotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "rltrain.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "rltrain.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* An image of the project: (list root reference name). Where there is a registry for all, it stands for the image's own. */}}
{{- define "rltrain.image" -}}
{{- $root := index . 0 }}
{{- $reference := index . 1 | default (printf "%s:%s" (index . 2) $root.Chart.AppVersion) }}
{{- with $root.Values.global.imageRegistry }}
{{- $reference = printf "%s/%s" (trimSuffix "/" .) (regexReplaceAll "^(localhost|[^/]*[.:][^/]*)/" $reference "") }}
{{- end }}
{{- $reference }}
{{- end }}

{{/* Exactly what the operator does, and what it grants to the jobs' heads. */}}
{{- define "rltrain.rules" -}}
- apiGroups: [rltrain.dev]
  resources: [rltrainingjobs]
  verbs: [list, watch, delete]
- apiGroups: [rltrain.dev]
  resources: [rltrainingjobs/status]
  verbs: [patch]
- apiGroups: [rltrain.dev]
  resources: [rltrainingjobs/finalizers]
  verbs: [update]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [services, configmaps, serviceaccounts]
  verbs: [get, list, create, patch]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles, rolebindings]
  verbs: [get, list, create, patch]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, list, create, patch]
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, create]
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [create]
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get]
- apiGroups: [""]
  resources: [pods, events]
  verbs: [list]
- apiGroups: [kueue.x-k8s.io]
  resources: [workloads]
  verbs: [get, list, watch, create, delete]
- apiGroups: [kueue.x-k8s.io]
  resources: [workloads/status]
  verbs: [patch]
- apiGroups: [scheduling.volcano.sh]
  resources: [podgroups]
  verbs: [get, list, create, patch]
- apiGroups: [scheduling.k8s.io]
  resources: [podgroups]
  verbs: [get, list, create, patch, delete]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end }}

{{/* What of the whole cluster it reads for jobs in queues. */}}
{{- define "rltrain.clusterRules" -}}
- apiGroups: [kueue.x-k8s.io]
  resources: [resourceflavors]
  verbs: [get]
- apiGroups: [scheduling.k8s.io]
  resources: [priorityclasses]
  verbs: [get]
{{- end }}
