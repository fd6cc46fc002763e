package inventory

// Role is the side that this process is on.
type Role string

// The choices of --role.
const (
	RoleAuto Role = "auto"
	RoleHost Role = "host"
	RoleDPU  Role = "dpu"
)
