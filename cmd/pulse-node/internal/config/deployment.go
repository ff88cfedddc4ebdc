package config

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
)

// deploymentKeyBytes is the length of a key that seals resume tokens.
const deploymentKeyBytes = 32

// checkDeployment reads the keys that the nodes of a deployment share.
func (l *loader) checkDeployment() {
	c := l.config
	if c.DeploymentKeyFile == "" {
		return
	}
	text, err := os.ReadFile(c.DeploymentKeyFile)
	if err == nil {
		c.DeploymentKeys, err = deploymentKeys(text)
	}
	if err != nil {
		l.fault("deployment_key_file", l.source("deployment_key_file"), err.Error())
	}
}

// deploymentKeys reads one key a line; empty lines are none. Its errors repeat
// nothing of the text.
func deploymentKeys(text []byte) (keys [][]byte, err error) {
	for i, line := range bytes.Split(text, []byte("\n")) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		key, err := base64.StdEncoding.Strict().AppendDecode(nil, line)
		if err != nil || len(key) != deploymentKeyBytes {
			return nil, fmt.Errorf("line %d must be the base64 of %d bytes (openssl rand -base64 %[2]d)", i+1, deploymentKeyBytes)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, errors.New("holds no key")
	}
	return keys, nil
}
