output "distribution_domain_name" {
  description = "What the site's host name has to point to, when all is well."
  value       = module.distribution.domain_name
}

output "karui_config" {
  description = "karui.yaml of the machines: terraform output -raw karui_config"
  value       = module.proxy.config
}

output "watchdog_config" {
  description = "watchdog.yaml, to rehearse with: terraform output -raw watchdog_config"
  value       = module.watchdog.config
}
