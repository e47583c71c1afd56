// Command tare-hash is tare with the areas identity and hash.
package main

import (
	"example.com/tare-hash/hash"

	"tare"
	"tare/areas/identity"
)

func main() { tare.Main(identity.Area{}, hash.Area{}) }
