output "distribution_id" {
  description = "Id of the distribution, null where none is made here."
  value       = one(aws_cloudfront_distribution.this[*].id)
}

output "distribution_arn" {
  description = "ARN of the distribution, for the role module."
  value       = one(aws_cloudfront_distribution.this[*].arn)
}

output "domain_name" {
  description = "The name to which the site's DNS points."
  value       = one(aws_cloudfront_distribution.this[*].domain_name)
}

output "hosted_zone_id" {
  description = "Zone of that name, for alias records."
  value       = one(aws_cloudfront_distribution.this[*].hosted_zone_id)
}

output "cache_policy_id" {
  description = "Cache policy for image paths."
  value       = aws_cloudfront_cache_policy.images.id
}

output "function_arn" {
  description = "Function for viewer requests of image paths."
  value       = aws_cloudfront_function.accept.arn
}

output "watchdog_site" {
  description = "The part of a site in watchdog.yaml that is known here. Merge it with ping_url, origin_url and the rest."
  value = {
    distribution_id  = one(aws_cloudfront_distribution.this[*].id)
    origin_group_id  = var.origin_group_id
    proxy_origin_id  = local.karui_origin_id
    direct_origin_id = local.origin_id
  }
}

output "pieces" {
  description = "What an existing distribution needs. The README of this module shows it in place."
  value = {
    cache_policy_id     = aws_cloudfront_cache_policy.images.id
    function_arn        = aws_cloudfront_function.accept.arn
    function_event_type = "viewer-request"
    path_patterns       = var.path_patterns
    methods             = ["GET", "HEAD", "OPTIONS"]
    failover_codes      = local.failover_codes
    uncached_errors     = local.uncached_errors
    karui_origin = {
      connection_attempts      = 1
      connection_timeout       = 2
      origin_read_timeout      = 10
      origin_keepalive_timeout = 60
    }
  }
}
