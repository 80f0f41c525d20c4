variable "distribution_ids" {
  description = "Distributions whose origin group the watchdog may swap."
  type        = list(string)

  validation {
    condition     = length(var.distribution_ids) > 0 && alltrue([for id in var.distribution_ids : can(regex("^[A-Z0-9]+$", id))])
    error_message = "distribution_ids needs at least one id such as E2ABCDEFGHIJKL."
  }
}

variable "watchdog_principal_arns" {
  description = "Who may take the watchdog's role: the ARN of the watchdog's own role, or of its account's root."
  type        = list(string)

  validation {
    condition     = length(var.watchdog_principal_arns) > 0 && !contains(var.watchdog_principal_arns, "*")
    error_message = "watchdog_principal_arns needs at least one ARN, and \"*\" would trust everybody."
  }
}

variable "external_id" {
  description = "The site's `external_id` in watchdog.yaml, agreed between the two accounts."
  type        = string

  validation {
    condition     = try(length(var.external_id) >= 2 && length(var.external_id) <= 1224 && can(regex("^[A-Za-z0-9+=,.@:/_-]+$", var.external_id)), false)
    error_message = "external_id takes 2 to 1224 letters, digits and + = , . @ : / _ -."
  }
}

variable "name" {
  description = "Name of the watchdog's role; the one for purges has -purge after it."
  type        = string
  default     = "karui-watchdog"
}

variable "allow_invalidation" {
  description = "Lets the watchdog invalidate: for `after_restore: invalidate`, and for rehearsals with --swap where the query is not in the key."
  type        = bool
  default     = false
}

variable "log_buckets" {
  description = <<-EOT
    Buckets of the distributions' standard logs of the old kind. CloudFront looks at, and sets, the bucket's ACL in the name of whoever
    updates such a distribution, so the watchdog needs s3:GetBucketAcl and s3:PutBucketAcl on them.
  EOT
  type        = list(string)
  default     = []
}

variable "edge_function_arns" {
  description = <<-EOT
    Lambda@Edge functions that the distributions use, without version. CloudFront replicates them in the name of whoever updates such
    a distribution, so the watchdog needs lambda:GetFunction and lambda:EnableReplication* on them.
  EOT
  type        = list(string)
  default     = []
}

variable "purge_principal_arns" {
  description = "Who may take the role for purges: the ARN of karui's own role. No such role is made without any."
  type        = list(string)
  default     = []

  validation {
    condition     = !contains(var.purge_principal_arns, "*")
    error_message = "\"*\" would let everybody invalidate."
  }
}

variable "purge_external_id" {
  description = "The `external_id` of the site's `distribution` in karui.yaml. Another one than the watchdog's, which may do more."
  type        = string
  default     = null

  validation {
    condition     = var.purge_external_id == null || try(length(var.purge_external_id) >= 2 && length(var.purge_external_id) <= 1224 && can(regex("^[A-Za-z0-9+=,.@:/_-]+$", var.purge_external_id)), false)
    error_message = "purge_external_id takes 2 to 1224 letters, digits and + = , . @ : / _ -."
  }
}

variable "permissions_boundary" {
  description = "ARN of a policy that bounds both roles, where the account demands one."
  type        = string
  default     = null
}

variable "tags" {
  description = "Tags of the roles."
  type        = map(string)
  default     = {}
}
