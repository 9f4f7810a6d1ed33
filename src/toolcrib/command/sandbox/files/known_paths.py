"""Tables of paths: what commands may see of a home folder, what holds secrets, and what other programs obey."""

from __future__ import annotations

# Relative to a home folder: what commands may read of it. `shown_settings` takes credentials out of settings.
SHOWN_OF_HOME = (
    ".gitconfig", ".config/git/config", ".config/git/ignore", ".config/git/attributes",
    ".local/bin", ".local/lib", ".local/share/mise", ".local/share/uv", ".local/share/pnpm",
    ".local/share/virtualenvs",
    ".pyenv", ".asdf", ".nvm", ".volta", ".fnm", ".bun/bin", ".deno/bin", ".rbenv", ".sdkman", ".ghcup/bin",
    ".nix-profile",
    ".cargo/bin", ".cargo/registry", ".cargo/git", ".cargo/config.toml", ".cargo/env", ".rustup", "go/bin", "go/pkg",
    ".m2/repository", ".gradle/wrapper", ".conda", "miniconda3", "anaconda3", "Library/Python",
)  # fmt: skip

# Relative to a home folder: hidden even where the home folder is the workspace, or holds it and is shown.
SECRETS_OF_HOME = (
    ".ssh", ".aws", ".gnupg", ".azure", ".kube", ".docker", ".oci", ".password-store", ".netrc", "_netrc", ".pgpass",
    ".my.cnf", ".npmrc", ".yarnrc.yml", ".pypirc", ".git-credentials", ".config/git/credentials", ".config/gcloud",
    ".config/gh", ".config/glab-cli", ".config/hub", ".config/op", ".config/rclone", ".config/sops", ".config/age",
    ".config/doctl", ".config/heroku", ".config/containers", ".config/toolcrib", ".config/google-chrome",
    ".config/chromium", ".config/BraveSoftware", ".config/microsoft-edge", ".mozilla", ".thunderbird",
    ".local/state/toolcrib", ".cargo/credentials",
    ".cargo/credentials.toml", ".gem/credentials", ".m2/settings.xml", ".gradle/gradle.properties", ".terraformrc",
    ".terraform.d", ".vault-token", ".databrickscfg", ".boto", ".s3cfg", ".local/share/keyrings",
    ".local/share/kwalletd",
    ".bash_history", ".zsh_history", ".python_history", ".node_repl_history", ".psql_history", ".mysql_history",
    ".sqlite_history", ".lesshst", ".local/share/fish/fish_history", ".claude", ".codex", ".gemini",
    ".config/anthropic",
    ".local/share/uv/credentials", ".local/share/python_keyring", ".conda/aau_token", ".continuum", ".condarc", ".pip",
    ".config/pip", ".config/pypoetry", ".config/pnpm", ".composer/auth.json", ".config/composer/auth.json",
    ".bundle/config", ".nuget/NuGet", ".huggingface", ".cache/huggingface/token", ".kaggle", ".config/github-copilot",
    "Library/Keychains", "Library/Application Support/Google", "Library/Application Support/Firefox",
    "Library/Cookies", ".authinfo", ".authinfo.gpg", ".viminfo", ".local/share/atuin", ".local/state/nvim/shada",
    ".local/share/nvim/shada", ".var/app", "snap/chromium", "snap/firefox", "snap/brave", "snap/thunderbird",
)  # fmt: skip

# Of the system: keys, and the sockets and state of daemons. Patterns of `glob` are allowed.
SECRETS_OF_SYSTEM = (
    "/root", "/home", "/Users", "/run", "/var/run", "/tmp", "/var/tmp", "/etc/shadow", "/etc/shadow-", "/etc/gshadow",
    "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssh/ssh_host_*_key", "/etc/ssl/private",
    "/etc/krb5.keytab", "/etc/apt/auth.conf", "/etc/apt/auth.conf.d", "/etc/netrc", "/etc/msmtprc",
    "/etc/postfix/sasl_passwd", "/etc/mysql/debian.cnf", "/etc/ipsec.secrets",
    "/etc/docker", "/etc/kubernetes", "/etc/rancher", "/etc/wireguard", "/etc/openvpn", "/etc/NetworkManager",
    "/etc/letsencrypt", "/etc/ppp", "/var/lib/docker", "/var/lib/containerd", "/var/lib/kubelet", "/var/lib/private",
    "/var/lib/postgresql", "/var/lib/mysql", "/var/lib/redis", "/var/spool/cron", "/var/mail",
    "/var/backups", "/swapfile", "/var/lib/cloud", "/var/lib/tailscale", "/var/lib/samba/private",
    "/etc/samba/*secret*", "/etc/samba/*cred*", "/etc/samba/smbpasswd",
)  # fmt: skip

# Of these, folders that are hidden only because their content is unknown. A person may be asked to open them.
HIDDEN_IN_CASE = ("/root", "/home", "/Users", "/run", "/var/run", "/tmp", "/var/tmp")

# Protected where the home folder is the workspace: what shells and programs run whenever they start.
PROTECTED_OF_HOME = (
    ".bashrc", ".bash_profile", ".bash_login", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".gitconfig",
    ".ripgreprc", ".config/autostart", ".config/systemd", ".config/fish", ".local/bin", ".pam_environment",
    ".xprofile",
)  # fmt: skip
# A home folder below these is a daemon's, not a person's.
SYSTEM_PARTS = ("/usr", "/bin", "/sbin", "/lib", "/etc", "/dev", "/proc", "/sys", "/nonexistent")
# Nobody is asked to let a command write here.
SYSTEM_OWN = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/boot", "/dev", "/proc", "/sys", "/System",
    "/Library",
)  # fmt: skip
# Never shown as a whole, whatever PATH says.
SYSTEM_ROOTS = ("/root", "/home", "/Users", "/tmp", "/run")
