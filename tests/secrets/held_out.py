"""Names and text that were set aside before the tables of names were written down, and not tuned on."""

SECRET_NAMES = [
    "MLFLOW_TRACKING_PASSWORD", "NEPTUNE_API_TOKEN", "COMET_API_KEY", "CLEARML_API_SECRET_KEY",
    "ROBOFLOW_API_KEY", "KAGGLE_KEY", "DOCKER_PASSWORD", "GITLAB_TOKEN", "CI_JOB_TOKEN", "NGC_CLI_API_KEY",
    "AZURE_STORAGE_KEY", "AZURE_CLIENT_SECRET", "GOOGLE_API_KEY", "SENTRY_DSN", "DD_API_KEY",
    "PINECONE_API_KEY", "REDIS_PASSWORD", "PGPASSWORD", "MYSQL_PWD", "SMTP_PASS", "JWT_SECRET",
    "ENCRYPTION_KEY", "SSH_PRIVATE_KEY", "refreshToken", "clientSecret", "dbPassword", "snowflake_passwd",
    "proxy-password", "vault_token", "hf-hub-token", "basic_auth", "mail_pw", "x-api-key",
    "databricks_token", "aws_session_token", "labelbox_key", "login_password", "master_key",
    "signing_secret", "bot_token", "oauth_token", "AUTH_TOKEN", "minio_secret", "licence_key", "ftp_pass",
    "ldap_bind_password", "otp_secret", "telegram_token", "s3_secret", "svc_pwd",
]  # fmt: skip

ORDINARY = {
    "prompt_token_budget": "4096", "token_shift": "true", "start_of_text_token": "<|startoftext|>",
    "tokenization": "bpe", "detokenize": "moses", "token_level_loss": "sum", "subword_tokens": "32000",
    "keyword_args": "a=1", "hotkey": "ctrl+s", "key_frames": "30", "key_encoder": "momentum",
    "foreign_key": "user_id", "primary_key": "id", "key_metric": "f1", "api_version": "2024-02-01",
    "access_mode": "read", "access_log": "off", "secretion_rate": "0.5", "password_policy": "strict",
    "pass_rate": "0.93", "pass_at_k": "10", "pwm_frequency": "50", "author_id": "ada",
    "authentication": "none", "auth_required": "false", "session": "night-3", "session_id": "17",
    "cookie_monster": "elmo", "bearer_angle": "270", "credits": "3", "signal": "sigterm", "design": "v2",
    "hash": "d41d8cd98f00b204e9800998ecf8427e", "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
    "etag": "9b2cf535f27731c9", "slack_variable": "0.1", "teams": "red,blue", "hook_position": "after",
    "callbacks": "lr_monitor", "private_dataset": "true", "public_key_path": "/etc/ssl/cert.pem",
    "key_projection": "linear", "kv_heads": "4",
    "model_card": "https://huggingface.co/org/model/blob/main/README.md", "license": "apache-2.0",
    "mask_token_prob": "0.15", "sign": "positive", "nonce_size": "12", "salt_and_pepper": "0.05",
    "pin_memory": "true", "login_node": "hpc-login1", "account": "proj123", "partition": "gpu_4",
    "user": "ada", "username": "ada", "dsn_format": "odbc", "ssh_port": "22",
    "certificate": "/etc/ssl/ca.pem", "token_ids": "[1, 2, 3]", "tokens_seen": "12.5B", "key_len": "64",
    "keys_to_ignore_on_save": "lm_head.weight", "passthrough": "x", "unk_token_penalty": "-2.0",
    "rotary_emb": "true", "generator": "philox", "access_pattern": "random",
}  # fmt: skip

#: Text with a secret, written down before the forms were looked at again; the secret is what must go.
TEXTS = [
    ("mysql --user=root --password=hunter2x", "hunter2x"),
    ("mysql -uroot -pS3cr3tPw9", "S3cr3tPw9"),
    ("curl -u alice:wonder7land https://api.example.com", "wonder7land"),
    ("sshpass -p 'gr33nApple' ssh host", "gr33nApple"),
    ("PGPASSWORD=tigerlily psql", "tigerlily"),
    ("postgresql://u:p%40ss9w@db:5432/x", "p%40ss9w"),
    ("redis://:r3d1sPw@cache:6379/0", "r3d1sPw"),
    ("Server=db;User Id=sa;Pwd=Adm1nPw!;", "Adm1nPw!"),
    ("Cookie: session=abc123def456ghi789; theme=dark", "abc123def456ghi789"),
    ("Set-Cookie: sid=s%3Aq8w7e6r5t4y3u2i1", "q8w7e6r5t4y3u2i1"),
    ("https://b.s3.amazonaws.com/k?X-Amz-Credential=AKIA&X-Amz-Signature=deadbeef0123", "deadbeef0123"),
    ("https://storage.googleapis.com/b/o?X-Goog-Signature=0a1b2c3d4e5f60718293", "0a1b2c3d4e5f6071"),
    ("s3fs key='LOCALKEY1' secret='l0calSecretX'", "l0calSecretX"),
    ('{"nested": {"db_password": "n3stedPw"}}', "n3stedPw"),
    ("machine api.wandb.ai login user password 89abcdef0123456789abcdef", "89abcdef0123"),
    ("//npm.example.org/:_authToken=npm_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789", "AbCdEfGhIjKl"),
    ("login: token is 'kf93kdlsPQ02' and passphrase \"open sesame 99\"", "kf93kdlsPQ02"),
    ("login: token is 'kf93kdlsPQ02' and passphrase \"open sesame 99\"", "sesame"),
    ('\\"{\\"password\\": \\"esc4pedPw\\"}\\"', "esc4pedPw"),
]
