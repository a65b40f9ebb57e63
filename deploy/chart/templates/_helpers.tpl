{{- /* The controllers that run, with commas between them. */ -}}
{{- define "virt-steward.controllers" -}}
{{- $found := list }}
{{- range list "advisor" "autopilot" "approver" "placement" }}
{{- if (index $.Values.controllers .).enabled }}{{ $found = append $found . }}{{ end }}
{{- end }}
{{- join "," $found }}
{{- end }}

{{- /* The ports that pods may connect to, as a NetworkPolicy names them. */ -}}
{{- define "virt-steward.egressPorts" -}}
{{- $found := list }}
{{- range $.Values.networkPolicy.egressPorts }}
{{- $found = append $found (dict "port" (int .) "protocol" "TCP") }}
{{- end }}
{{- toJson $found }}
{{- end }}
