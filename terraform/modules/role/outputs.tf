output "watchdog_role_arn" {
  description = "`role_arn` of the site in watchdog.yaml."
  value       = aws_iam_role.watchdog.arn
}

output "watchdog_role_name" {
  description = "Name of that role, to attach what only a rehearsal finds missing."
  value       = aws_iam_role.watchdog.name
}

output "purge_role_arn" {
  description = "`distribution.role_arn` of the site in karui.yaml; null without purge_principal_arns."
  value       = one(aws_iam_role.purge[*].arn)
}
