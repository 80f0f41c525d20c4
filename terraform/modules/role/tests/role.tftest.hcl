mock_provider "aws" {
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_data "aws_caller_identity" {
    defaults = { account_id = "111122223333" }
  }
}

variables {
  distribution_ids        = ["E2ABCDEFGHIJKL"]
  watchdog_principal_arns = ["arn:aws:iam::444455556666:role/karui-watchdog-instance"]
  external_id             = "shop-7d1f"
}

run "trust" {
  assert {
    condition = jsondecode(aws_iam_role.watchdog.assume_role_policy).Statement == [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { AWS = ["arn:aws:iam::444455556666:role/karui-watchdog-instance"] }
      Condition = { StringEquals = { "sts:ExternalId" = "shop-7d1f" } }
    }]
    error_message = "the role trusts the watchdog alone, and only with the external id"
  }
}

run "least_rights" {
  assert {
    condition = toset(flatten([for s in jsondecode(aws_iam_role_policy.watchdog.policy).Statement : s.Action])) == toset([
      "cloudfront:GetDistribution", "cloudfront:GetDistributionConfig", "cloudfront:UpdateDistribution", "cloudfront:GetCachePolicy",
    ])
    error_message = "what the watchdog does, and nothing more"
  }
  assert {
    condition     = one([for s in jsondecode(aws_iam_role_policy.watchdog.policy).Statement : s.Resource if contains(s.Action, "cloudfront:UpdateDistribution")]) == ["arn:aws:cloudfront::111122223333:distribution/E2ABCDEFGHIJKL"]
    error_message = "on the named distribution alone"
  }
  assert {
    condition     = contains(one([for s in jsondecode(aws_iam_role_policy.watchdog.policy).Statement : s.Resource if contains(s.Action, "cloudfront:GetCachePolicy")]), "arn:aws:cloudfront::111122223333:cache-policy/*")
    error_message = "cache policies are read for the rehearsal"
  }
  assert {
    condition     = length(aws_iam_role.purge) == 0 && output.purge_role_arn == null
    error_message = "no role for purges unless somebody may take it"
  }
}

run "optional_rights" {
  variables {
    allow_invalidation = true
    log_buckets        = ["shop-logs"]
    edge_function_arns = ["arn:aws:lambda:us-east-1:111122223333:function:rewrite"]
  }
  assert {
    condition = { for s in jsondecode(aws_iam_role_policy.watchdog.policy).Statement : s.Sid => [s.Action, s.Resource] if !contains(["SwapTheOriginGroup", "ReadCachePolicies"], s.Sid) } == {
      InvalidateAfterRestore = [["cloudfront:CreateInvalidation", "cloudfront:GetInvalidation"], ["arn:aws:cloudfront::111122223333:distribution/E2ABCDEFGHIJKL"]]
      StandardLogs           = [["s3:GetBucketAcl", "s3:PutBucketAcl"], ["arn:aws:s3:::shop-logs"]]
      LambdaAtEdge = [["lambda:GetFunction", "lambda:EnableReplication*"], [
        "arn:aws:lambda:us-east-1:111122223333:function:rewrite", "arn:aws:lambda:us-east-1:111122223333:function:rewrite:*"
      ]]
    }
    error_message = "each optional right comes with its own statement and no wider resource"
  }
}

run "purge" {
  variables {
    purge_principal_arns = ["arn:aws:iam::444455556666:role/karui-proxy"]
    purge_external_id    = "shop-purge-91ac"
  }
  assert {
    condition     = flatten([for s in jsondecode(aws_iam_role_policy.purge[0].policy).Statement : s.Action]) == ["cloudfront:CreateInvalidation", "cloudfront:GetInvalidation"]
    error_message = "the role for purges invalidates, nothing more"
  }
  assert {
    condition     = flatten([for s in jsondecode(aws_iam_role_policy.purge[0].policy).Statement : s.Resource]) == ["arn:aws:cloudfront::111122223333:distribution/E2ABCDEFGHIJKL"]
    error_message = "and on the named distribution alone"
  }
  assert {
    condition     = jsondecode(aws_iam_role.purge[0].assume_role_policy).Statement[0].Condition.StringEquals["sts:ExternalId"] == "shop-purge-91ac"
    error_message = "the role for purges has an external id of its own"
  }
  assert {
    condition     = jsondecode(aws_iam_role.purge[0].assume_role_policy).Statement[0].Principal.AWS == ["arn:aws:iam::444455556666:role/karui-proxy"]
    error_message = "karui takes it, not the watchdog"
  }
}

run "refuses_one_id_for_both" {
  command = plan
  variables {
    purge_principal_arns = ["arn:aws:iam::444455556666:role/karui-proxy"]
    purge_external_id    = "shop-7d1f"
  }
  expect_failures = [aws_iam_role.purge]
}

run "refuses_everybody" {
  command = plan
  variables {
    watchdog_principal_arns = ["*"]
  }
  expect_failures = [var.watchdog_principal_arns]
}

run "refuses_wildcard_distribution" {
  command = plan
  variables {
    distribution_ids = ["*"]
  }
  expect_failures = [var.distribution_ids]
}

run "refuses_short_external_id" {
  command = plan
  variables {
    external_id = "x"
  }
  expect_failures = [var.external_id]
}
