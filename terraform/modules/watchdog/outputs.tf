output "role_arn" {
  description = "The machine's role: `watchdog_principal_arns` of the role module."
  value       = aws_iam_role.this.arn
}

output "config" {
  description = "watchdog.yaml as it is on the machine, for karui-watchdog config check. Secrets are in files there, not here."
  value       = yamlencode(local.config)
}

output "state_volume_id" {
  description = "The volume that holds the state."
  value       = aws_ebs_volume.state.id
}

output "alarm_names" {
  description = "Names of the alarms."
  value       = [aws_cloudwatch_metric_alarm.gone.alarm_name]
}
