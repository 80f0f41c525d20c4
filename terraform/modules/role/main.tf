data "aws_partition" "current" {}
data "aws_caller_identity" "current" {}

locals {
  partition  = data.aws_partition.current.partition
  cloudfront = "arn:${local.partition}:cloudfront::${data.aws_caller_identity.current.account_id}"
  # The distributions by name. UpdateDistribution on distribution/* would let
  # the watchdog change any site of the account.
  distributions = [for id in var.distribution_ids : "${local.cloudfront}:distribution/${id}"]

  watchdog_statements = concat(
    [
      {
        Sid      = "SwapTheOriginGroup"
        Effect   = "Allow"
        Action   = ["cloudfront:GetDistribution", "cloudfront:GetDistributionConfig", "cloudfront:UpdateDistribution"]
        Resource = local.distributions
      },
      {
        # The rehearsal looks whether Accept is in the key, and at the TTLs.
        Sid      = "ReadCachePolicies"
        Effect   = "Allow"
        Action   = ["cloudfront:GetCachePolicy"]
        Resource = ["${local.cloudfront}:cache-policy/*", "arn:${local.partition}:cloudfront:::cache-policy/*"]
      },
    ],
    [for enabled in [var.allow_invalidation] : {
      Sid      = "InvalidateAfterRestore"
      Effect   = "Allow"
      Action   = ["cloudfront:CreateInvalidation", "cloudfront:GetInvalidation"]
      Resource = local.distributions
    } if enabled],
    [for buckets in [var.log_buckets] : {
      Sid      = "StandardLogs"
      Effect   = "Allow"
      Action   = ["s3:GetBucketAcl", "s3:PutBucketAcl"]
      Resource = [for b in buckets : "arn:${local.partition}:s3:::${b}"]
    } if length(buckets) > 0],
    [for functions in [var.edge_function_arns] : {
      Sid      = "LambdaAtEdge"
      Effect   = "Allow"
      Action   = ["lambda:GetFunction", "lambda:EnableReplication*"]
      Resource = flatten([for f in functions : [f, "${f}:*"]])
    } if length(functions) > 0],
  )
}

resource "aws_iam_role" "watchdog" {
  name                 = var.name
  description          = "karui-watchdog: exchanges the members of an origin group"
  max_session_duration = 3600 # the most that a role taken by a role gets
  permissions_boundary = var.permissions_boundary
  tags                 = var.tags

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { AWS = var.watchdog_principal_arns }
      Condition = { StringEquals = { "sts:ExternalId" = var.external_id } }
    }]
  })
}

resource "aws_iam_role_policy" "watchdog" {
  name   = "swap"
  role   = aws_iam_role.watchdog.id
  policy = jsonencode({ Version = "2012-10-17", Statement = local.watchdog_statements })
}

# A role of its own for purges: karui faces the web, and must not be able to
# change a distribution.
resource "aws_iam_role" "purge" {
  count = length(var.purge_principal_arns) > 0 ? 1 : 0

  name                 = "${var.name}-purge"
  description          = "karui purge: invalidates at the edge, nothing more"
  max_session_duration = 3600
  permissions_boundary = var.permissions_boundary
  tags                 = var.tags

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { AWS = var.purge_principal_arns }
      Condition = { StringEquals = { "sts:ExternalId" = var.purge_external_id } }
    }]
  })

  lifecycle {
    precondition {
      condition     = var.purge_external_id != null
      error_message = "purge_principal_arns needs purge_external_id."
    }
    precondition {
      condition     = var.purge_external_id != var.external_id
      error_message = "purge_external_id equals external_id: give karui another one, so that it does not know the watchdog's."
    }
  }
}

resource "aws_iam_role_policy" "purge" {
  count = length(var.purge_principal_arns) > 0 ? 1 : 0

  name = "invalidate"
  role = aws_iam_role.purge[0].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid      = "InvalidateOnly"
      Effect   = "Allow"
      Action   = ["cloudfront:CreateInvalidation", "cloudfront:GetInvalidation"]
      Resource = local.distributions
    }]
  })
}
