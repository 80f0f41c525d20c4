resource "aws_iam_role" "this" {
  name_prefix = "${var.name}-"
  description = "karui's machines"
  tags        = var.tags

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "ec2.amazonaws.com" }
    }]
  })
}

resource "aws_iam_role_policy" "this" {
  name = "karui"
  role = aws_iam_role.this.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [{
        Sid      = "Secrets"
        Effect   = "Allow"
        Action   = ["ssm:GetParameter"]
        Resource = [for n in local.secret_names : aws_ssm_parameter.secret[n].arn]
        },
        {
          Sid      = "SayThatItIsReady"
          Effect   = "Allow"
          Action   = ["autoscaling:CompleteLifecycleAction"]
          Resource = ["arn:${data.aws_partition.current.partition}:autoscaling:${data.aws_region.current.region}:${data.aws_caller_identity.current.account_id}:autoScalingGroup:*:autoScalingGroupName/${var.name}"]
      }],
      [for arns in [var.assume_role_arns] : {
        Sid      = "TakeRoles"
        Effect   = "Allow"
        Action   = ["sts:AssumeRole"]
        Resource = arns
      } if length(arns) > 0],
    )
  })
}

resource "aws_iam_role_policy_attachment" "extra" {
  for_each = toset(var.policy_arns)

  role       = aws_iam_role.this.name
  policy_arn = each.value
}

resource "aws_iam_instance_profile" "this" {
  name_prefix = "${var.name}-"
  role        = aws_iam_role.this.name
  tags        = var.tags
}
