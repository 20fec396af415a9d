"""What people declare: the programs of the layers, and a `Pulumi.<stack>.yaml` for each stack."""
