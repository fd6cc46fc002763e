package preload

import "C"
