package main

import (
	"bytes"
	"os"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// writeSBOM writes a bill of materials. It has neither a time nor a serial number, so that it is reproducible.
func writeSBOM(file, version string, modules []*module) error {
	const program = "github.com/dma-copy/dma-copy"
	main := component(&module{path: program, version: version, licences: []string{"Apache-2.0"}})
	main.Type = cyclonedx.ComponentTypeApplication
	components := make([]cyclonedx.Component, 0, len(modules))
	references := make([]string, 0, len(modules))
	for _, module := range modules {
		part := component(module)
		components = append(components, part)
		references = append(references, part.BOMRef)
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Component: &main}
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: main.BOMRef, Dependencies: &references}}
	var out bytes.Buffer
	encoder := cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON).SetPretty(true)
	if err := encoder.Encode(bom); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o644)
}

func component(m *module) cyclonedx.Component {
	var licences cyclonedx.Licenses
	for _, licence := range m.licences {
		licences = append(licences, cyclonedx.LicenseChoice{License: &cyclonedx.License{ID: licence}})
	}
	url := "pkg:golang/" + m.path + "@" + m.version
	return cyclonedx.Component{
		BOMRef:     url,
		Type:       cyclonedx.ComponentTypeLibrary,
		Name:       m.path,
		Version:    m.version,
		PackageURL: url,
		Licenses:   &licences,
	}
}
