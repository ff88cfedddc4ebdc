package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
)

// material reads the raw bytes of k's key from the one place that names it.
func (l *loader) material(k Key) ([]byte, error) {
	given := 0
	for _, s := range []string{k.SecretFile, k.SecretEnv, k.Secret, k.PublicKeyFile} {
		if s != "" {
			given++
		}
	}
	switch {
	case given != 1:
		return nil, errors.New("must have exactly one of secret_file, secret_env, secret, public_key_file")
	case k.PublicKeyFile != "":
		text, err := os.ReadFile(k.PublicKeyFile)
		if err != nil {
			return nil, fmt.Errorf("public_key_file: %w", err)
		}
		return text, nil
	case k.SecretFile != "":
		text, err := os.ReadFile(k.SecretFile)
		if err != nil {
			return nil, fmt.Errorf("secret_file: %w", err)
		}
		return cutLineBreak(text), nil
	case k.SecretEnv != "":
		text, ok := l.environ[k.SecretEnv]
		if !ok {
			return nil, fmt.Errorf("secret_env: %s is not set in the environment", k.SecretEnv)
		}
		return []byte(text), nil
	}
	return []byte(k.Secret), nil
}

// cutLineBreak takes the one line break off that editors leave at the end of a file.
func cutLineBreak(text []byte) []byte {
	text, found := bytes.CutSuffix(text, []byte("\n"))
	if found {
		text = bytes.TrimSuffix(text, []byte("\r"))
	}
	return text
}
