// Command manifests checks Kubernetes manifests without a cluster and without a network: each document is decoded
// strictly into the type of its kind, so that an unknown field, a wrong type and a duplicate key are errors, and what
// refers to other parts of the manifests has to find them.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	kubeyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := checkFiles(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "manifests:", err)
		os.Exit(1)
	}
}

func checkFiles(names []string) error {
	if len(names) == 0 {
		return errors.New("no file is named")
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		kinds, err := check(text)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Printf("%s: %v\n", name, kinds)
	}
	return nil
}

// check returns the kinds of the documents of a file.
func check(text []byte) (kinds []string, err error) {
	documents := kubeyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for number := 1; ; number++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		kind := ""
		if err == nil {
			kind, err = checkDocument(document)
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", number, err)
		}
		kinds = append(kinds, kind)
	}
	if len(kinds) == 0 {
		return nil, errors.New("it has no document")
	}
	return kinds, nil
}

func checkDocument(text []byte) (kind string, err error) {
	var about metav1.TypeMeta
	if err := yaml.Unmarshal(text, &about); err != nil {
		return "", err
	}
	switch kind = about.APIVersion + " " + about.Kind; kind {
	case "v1 Namespace":
		return kind, decode(text, &corev1.Namespace{})
	case "v1 Service":
		return kind, decode(text, &corev1.Service{})
	case "apps/v1 DaemonSet":
		return kind, checkDaemonSet(text)
	case "batch/v1 Job":
		return kind, checkJob(text)
	}
	return "", fmt.Errorf("kind %q is not known", kind)
}

func decode(text []byte, into metav1.Object) error {
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		return err
	}
	if into.GetName() == "" {
		return errors.New("it has no name")
	}
	return nil
}

func checkDaemonSet(text []byte) error {
	var set appsv1.DaemonSet
	if err := decode(text, &set); err != nil {
		return err
	}
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return err
	}
	template := set.Spec.Template
	if selector.Empty() || !selector.Matches(labels.Set(template.Labels)) {
		return fmt.Errorf("the selector %q does not match the labels %v of the template", selector, template.Labels)
	}
	if policy := template.Spec.RestartPolicy; policy != "" && policy != corev1.RestartPolicyAlways {
		return fmt.Errorf("restartPolicy %s: a DaemonSet has Always", policy)
	}
	return checkPod(template.Spec)
}

func checkJob(text []byte) error {
	var job batchv1.Job
	if err := decode(text, &job); err != nil {
		return err
	}
	pod := job.Spec.Template.Spec
	if pod.RestartPolicy != corev1.RestartPolicyNever && pod.RestartPolicy != corev1.RestartPolicyOnFailure {
		return fmt.Errorf("restartPolicy %q: a Job has Never or OnFailure", pod.RestartPolicy)
	}
	return checkPod(pod)
}

// checkPod checks the containers against the volumes of a pod.
func checkPod(pod corev1.PodSpec) error {
	volumes := map[string]bool{}
	for _, v := range pod.Volumes {
		if volumes[v.Name] || v.VolumeSource == (corev1.VolumeSource{}) {
			return fmt.Errorf("volume %q has no source or is there twice", v.Name)
		}
		volumes[v.Name] = true
	}
	if len(pod.Containers) == 0 {
		return errors.New("it has no container")
	}
	names := map[string]bool{}
	for _, c := range append(pod.InitContainers, pod.Containers...) {
		if c.Name == "" || names[c.Name] || c.Image == "" {
			return fmt.Errorf("container %q has no name or no image, or is there twice", c.Name)
		}
		names[c.Name] = true
		for _, mount := range c.VolumeMounts {
			if !volumes[mount.Name] || mount.MountPath == "" {
				return fmt.Errorf("container %s mounts volume %q, which is not there", c.Name, mount.Name)
			}
		}
	}
	return nil
}
