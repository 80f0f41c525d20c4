locals {
  ec2 = "arn:${data.aws_partition.current.partition}:ec2:${data.aws_region.current.region}:${data.aws_caller_identity.current.account_id}"
}

resource "aws_iam_role" "this" {
  # A fixed name: the customers' accounts trust it.
  name        = "${var.name}-instance"
  description = "karui-watchdog's machine"
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
  name = "karui-watchdog"
  role = aws_iam_role.this.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [
        {
          Sid      = "TakeTheCustomersRoles"
          Effect   = "Allow"
          Action   = ["sts:AssumeRole"]
          Resource = var.assume_role_arns
        },
        {
          Sid      = "AttachTheState"
          Effect   = "Allow"
          Action   = ["ec2:AttachVolume"]
          Resource = [aws_ebs_volume.state.arn]
        },
        {
          Sid       = "AttachItHere"
          Effect    = "Allow"
          Action    = ["ec2:AttachVolume"]
          Resource  = ["${local.ec2}:instance/*"]
          Condition = { StringEquals = { "aws:ResourceTag/karui-watchdog" = var.name } }
        },
      ],
      [for id in [var.elastic_ip_allocation_id] : {
        Sid      = "TakeTheAddress"
        Effect   = "Allow"
        Action   = ["ec2:AssociateAddress"]
        Resource = ["${local.ec2}:elastic-ip/${id}", "${local.ec2}:instance/*", "${local.ec2}:network-interface/*"]
      } if id != null],
      [for names in [local.secret_names] : {
        Sid      = "Secrets"
        Effect   = "Allow"
        Action   = ["ssm:GetParameter"]
        Resource = [for n in names : aws_ssm_parameter.secret[n].arn]
      } if length(names) > 0],
      # Both: a mail with its headers already written counts as a raw one.
      [for arns in [var.ses_identity_arns] : {
        Sid      = "Mail"
        Effect   = "Allow"
        Action   = ["ses:SendEmail", "ses:SendRawEmail"]
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
