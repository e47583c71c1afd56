package identity

import (
	"tare/area"
	"tare/internal/unit"
)

// OIDC are the options of oidc-token. The URL is the token endpoint, unless token_path adds to it.
type OIDC struct {
	Grant        string      `yaml:"grant,omitempty" json:"grant,omitempty" jsonschema:"enum=client_credentials,enum=token_exchange" jsonschema_description:"client_credentials (RFC 6749, default) or token_exchange (RFC 8693)."`
	TokenPath    string      `yaml:"token_path,omitempty" json:"token_path,omitempty" jsonschema_description:"Path of the token endpoint below the URL. Default: the URL is the token endpoint."`
	ClientID     string      `yaml:"client_id,omitempty" json:"client_id,omitempty" jsonschema_description:"The client."`
	ClientSecret area.Secret `yaml:"client_secret,omitempty" json:"client_secret,omitzero" jsonschema_description:"The client's secret: {env: NAME} or {file: path}."`
	Auth         string      `yaml:"auth,omitempty" json:"auth,omitempty" jsonschema:"enum=basic,enum=post,enum=none" jsonschema_description:"How the client authenticates: basic (client_secret_basic, default with a secret), post (client_secret_post), none (a public client, default without a secret)."`
	Audience     string      `yaml:"audience,omitempty" json:"audience,omitempty" jsonschema_description:"Parameter audience. {n} makes it new in each call, which no cache can answer."`
	Resource     string      `yaml:"resource,omitempty" json:"resource,omitempty" jsonschema_description:"Parameter resource (RFC 8707)."`
	Scope        string      `yaml:"scope,omitempty" json:"scope,omitempty" jsonschema_description:"Parameter scope. {n} makes it new in each call."`
	SubjectToken area.Secret `yaml:"subject_token,omitempty" json:"subject_token,omitzero" jsonschema_description:"The token to exchange: {env: NAME} or {file: path}. A file is read again while the run lasts."`
	SubjectType  string      `yaml:"subject_token_type,omitempty" json:"subject_token_type,omitempty" jsonschema_description:"Its type. Default urn:ietf:params:oauth:token-type:access_token; jwt, id_token and access_token stand for their URNs."`
	RequestType  string      `yaml:"requested_token_type,omitempty" json:"requested_token_type,omitempty" jsonschema_description:"Type of the token that is wanted. Default: the server's choice."`
}

// Vault are the options of vault-login.
type Vault struct {
	Method    string      `yaml:"method,omitempty" json:"method,omitempty" jsonschema:"enum=kubernetes,enum=jwt,enum=approle,enum=userpass" jsonschema_description:"Auth method. Default kubernetes."`
	Mount     string      `yaml:"mount,omitempty" json:"mount,omitempty" jsonschema_description:"Where the method is mounted. Default: the method's name."`
	Namespace string      `yaml:"namespace,omitempty" json:"namespace,omitempty" jsonschema_description:"Header X-Vault-Namespace."`
	Role      string      `yaml:"role,omitempty" json:"role,omitempty" jsonschema_description:"Role of kubernetes and jwt."`
	JWT       area.Secret `yaml:"jwt,omitempty" json:"jwt,omitzero" jsonschema_description:"The workload's JWT: {file: path} or {env: NAME}. Default for kubernetes: the projected service-account token. A file is read again while the run lasts."`
	RoleID    string      `yaml:"role_id,omitempty" json:"role_id,omitempty" jsonschema_description:"Role ID of approle."`
	SecretID  area.Secret `yaml:"secret_id,omitempty" json:"secret_id,omitzero" jsonschema_description:"Secret ID of approle: {env: NAME} or {file: path}."`
	Username  string      `yaml:"username,omitempty" json:"username,omitempty" jsonschema_description:"User of userpass."`
	Password  area.Secret `yaml:"password,omitempty" json:"password,omitzero" jsonschema_description:"Password of userpass: {env: NAME} or {file: path}."`
}

// HTTP are the options of http-token.
type HTTP struct {
	Method  string                 `yaml:"method,omitempty" json:"method,omitempty" jsonschema:"enum=GET,enum=POST,enum=PUT,enum=PATCH,enum=DELETE,enum=OPTIONS" jsonschema_description:"Default GET, or POST with a body."`
	Path    string                 `yaml:"path,omitempty" json:"path,omitempty" jsonschema_description:"Path and query below the URL. {n} makes it new in each call."`
	Body    string                 `yaml:"body,omitempty" json:"body,omitempty" jsonschema_description:"Request body. {n} makes it new in each call, {token} stands for the caller's token, and {NAME} for a secret of secrets or a file of files. It must hold no secret itself."`
	Files   map[string]string      `yaml:"files,omitempty" json:"files,omitempty" jsonschema_description:"Files in the body, by name: {NAME} stands for what the file holds, as it is but without its line ends. The content is not copied into the record."`
	Secrets map[string]area.Secret `yaml:"secrets,omitempty" json:"secrets,omitempty" jsonschema_description:"Secrets in the body, by name: what {NAME} stands for. Each is {env: NAME} or {file: path}; a file is read again while the run lasts."`
	Bearer  area.Secret            `yaml:"bearer,omitempty" json:"bearer,omitzero" jsonschema_description:"Sent as Authorization: Bearer …: {env: NAME} or {file: path}."`
	Token   string                 `yaml:"token,omitempty" json:"token,omitempty" jsonschema_description:"Where the answer holds the token: names joined by dots, such as auth.client_token. Default access_token. \"-\": the whole body is the token."`
	Expires string                 `yaml:"expires,omitempty" json:"expires,omitempty" jsonschema_description:"Where the answer says when the token expires: seconds from now, seconds since 1970, or RFC 3339. Default: it does not say."`
	// StatusOnly is for endpoints that give no token.
	StatusOnly bool `yaml:"status_only,omitempty" json:"status_only,omitempty" jsonschema_description:"Judge an answer by its status alone, whatever its body is: for an endpoint that gives no token. Every report says so."`
	Status     int  `yaml:"status,omitempty" json:"status,omitempty" jsonschema:"minimum=200,maximum=299" jsonschema_description:"Status of a good answer. Default 200."`
}

// K8s are the options of k8s-tokenrequest and k8s-tokenreview.
type K8s struct {
	Namespace      string        `yaml:"namespace,omitempty" json:"namespace,omitempty" jsonschema_description:"Namespace of the service account. Default: default."`
	ServiceAccount string        `yaml:"service_account,omitempty" json:"service_account,omitempty" jsonschema_description:"Whose token is asked for. Default: default."`
	Audiences      []string      `yaml:"audiences,omitempty" json:"audiences,omitempty" jsonschema_description:"Audiences of the token. {n} makes one new in each call. Default: the API server's own."`
	Expiration     unit.Duration `yaml:"expiration,omitempty" json:"expiration,omitempty" jsonschema_description:"Life that is asked for; the API server wants 10m or more. Default 1h."`
	Token          area.Secret   `yaml:"token,omitempty" json:"token,omitzero" jsonschema_description:"The caller's own credential, sent as Authorization: Bearer …. A file is read again while the run lasts."`
	ReviewToken    area.Secret   `yaml:"review_token,omitempty" json:"review_token,omitzero" jsonschema_description:"The token that is to be reviewed. Default: the caller's own."`
}

// IMDS are the options of imdsv2.
type IMDS struct {
	Role string        `yaml:"role,omitempty" json:"role,omitempty" jsonschema_description:"Role whose credentials are asked for. Default: the one that the endpoint lists."`
	TTL  unit.Duration `yaml:"ttl,omitempty" json:"ttl,omitempty" jsonschema_description:"Life of the session token, from 1s to 6h. Default 6h."`
}

// Azure are the options of azure-imds.
type Azure struct {
	Resource string `yaml:"resource,omitempty" json:"resource,omitempty" jsonschema_description:"Audience of the token. Default https://management.azure.com/."`
	ClientID string `yaml:"client_id,omitempty" json:"client_id,omitempty" jsonschema_description:"The user-assigned identity. Default: the system's own."`
}

// Expect is what a token that is a JWT has to say.
type Expect struct {
	Subject  string `yaml:"subject,omitempty" json:"subject,omitempty" jsonschema_description:"Claim sub."`
	Audience string `yaml:"audience,omitempty" json:"audience,omitempty" jsonschema_description:"What claim aud must hold. {n} as in the request."`
	Issuer   string `yaml:"issuer,omitempty" json:"issuer,omitempty" jsonschema_description:"Claim iss."`
}

// Caller is one identity that differs in more than its source address. What it leaves out is the adapter's option.
type Caller struct {
	Name          string                 `yaml:"name,omitempty" json:"name,omitempty" jsonschema_description:"Client ID, role ID, user name or role, whatever the adapter has."`
	Token         area.Secret            `yaml:"token,omitempty" json:"token,omitzero" jsonschema_description:"Its credential: client secret, subject token, JWT, secret ID, password or bearer token, whatever the adapter has. {env: NAME} or {file: path}."`
	Audience      string                 `yaml:"audience,omitempty" json:"audience,omitempty" jsonschema_description:"Audience that it asks for."`
	Headers       map[string]string      `yaml:"headers,omitempty" json:"headers,omitempty" jsonschema_description:"Further request headers. They must hold no secret."`
	SecretHeaders map[string]area.Secret `yaml:"secret_headers,omitempty" json:"secret_headers,omitempty" jsonschema_description:"Further request headers with secrets."`
	Address       string                 `yaml:"address,omitempty" json:"address,omitempty" jsonschema_description:"Source address of its connections, such as 127.1.0.7."`
	Subject       string                 `yaml:"subject,omitempty" json:"subject,omitempty" jsonschema_description:"Claim sub that its tokens must have, instead of expect.subject."`
}

// optionsOf returns a section of s; it is empty where the file leaves it out.
func optionsOf[T any](s *Spec, section func(s *Spec) *T) (o T) {
	if s != nil {
		if given := section(s); given != nil {
			o = *given
		}
	}
	return o
}
