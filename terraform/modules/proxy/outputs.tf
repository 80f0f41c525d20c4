output "hostname" {
  description = "karui's own host name: `karui.domain_name` of the distribution module."
  value       = var.hostname
}

output "ping_url" {
  description = "`ping_url` of the sites in watchdog.yaml."
  value       = "https://${var.hostname}/.karui/ping.jpg"
}

output "load_balancer_dns_name" {
  description = "What the host name has to point to, where no zone_id is given."
  value       = aws_lb.this.dns_name
}

output "load_balancer_zone_id" {
  description = "Zone of that name, for alias records."
  value       = aws_lb.this.zone_id
}

output "role_arn" {
  description = "The machines' role: `purge_principal_arns` of the role module."
  value       = aws_iam_role.this.arn
}

output "config" {
  description = "karui.yaml as it is on the machines, for karui config check. Secrets are in files there, not here."
  value       = yamlencode(local.config)
}

output "alarm_names" {
  description = "Names of the alarms."
  value = [
    aws_cloudwatch_metric_alarm.none_healthy.alarm_name,
    aws_cloudwatch_metric_alarm.unhealthy.alarm_name,
    aws_cloudwatch_metric_alarm.turned_away.alarm_name,
    aws_cloudwatch_metric_alarm.slow.alarm_name,
  ]
}
