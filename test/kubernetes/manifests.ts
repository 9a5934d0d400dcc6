/** Reads the manifests of deploy/kubernetes as their files have them, and what tests look at in a pod. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse, parseAllDocuments } from 'yaml';
import { z } from 'zod';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
export const MANIFESTS = join(ROOT, 'deploy/kubernetes');
export const fileOf = (path: string) => readFile(join(ROOT, path), 'utf8');

export const COMPONENTS = (await readdir(join(MANIFESTS, 'components'))).sort();

const objectSchema = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({ name: z.string(), labels: z.record(z.string(), z.string()).default({}) }),
});
export type KubernetesObject = z.output<typeof objectSchema>;

/** The objects of a YAML text of several documents. */
export function objectsIn(text: string): KubernetesObject[] {
  return parseAllDocuments(text, { merge: true }).map((document) => objectSchema.parse(document.toJS()));
}

const kustomizationSchema = z.object({
  resources: z.array(z.string()).default([]),
  images: z.array(z.object({ name: z.string() })).default([]),
  configMapGenerator: z.array(z.object({ name: z.string(), literals: z.array(z.string()).default([]) })).default([]),
});

/** @param folder below deploy/kubernetes */
export async function kustomizationOf(folder: string) {
  return kustomizationSchema.parse(parse(await readFile(join(MANIFESTS, folder, 'kustomization.yaml'), 'utf8')));
}

/** The objects in the files that the kustomization of a folder lists, without generated ones and without other folders. */
export async function objectsOf(folder: string): Promise<KubernetesObject[]> {
  const { resources } = await kustomizationOf(folder);
  const files = resources.filter((name) => name.endsWith('.yaml'));
  const texts = await Promise.all(files.map((name) => readFile(join(MANIFESTS, folder, name), 'utf8')));
  return texts.flatMap(objectsIn);
}

const keyRef = z.object({ name: z.string(), key: z.string(), optional: z.boolean().optional() });
const variableSchema = z.object({
  name: z.string(),
  value: z.string().optional(),
  valueFrom: z.object({ secretKeyRef: keyRef.optional(), configMapKeyRef: keyRef.optional() }).optional(),
});
export type Variable = z.output<typeof variableSchema>;

const probeSchema = z.object({
  httpGet: z.object({ path: z.string(), port: z.string() }).optional(),
  exec: z.object({ command: z.array(z.string()) }).optional(),
  periodSeconds: z.number(),
  timeoutSeconds: z.number(),
  failureThreshold: z.number().default(3),
});

const containerSchema = z.object({
  image: z.string(),
  command: z.array(z.string()).optional(),
  args: z.array(z.string()).optional(),
  env: z.array(variableSchema),
  ports: z.array(z.object({ name: z.string(), containerPort: z.number() })).default([]),
  resources: z.object({ limits: z.object({ memory: z.string() }) }),
  securityContext: z.unknown(),
  startupProbe: probeSchema.optional(),
  livenessProbe: probeSchema.optional(),
  readinessProbe: probeSchema.optional(),
  volumeMounts: z.array(z.object({ name: z.string(), mountPath: z.string(), readOnly: z.boolean().default(false) })),
});

const podSchema = z.object({
  metadata: z.object({ labels: z.record(z.string(), z.string()) }),
  spec: z.looseObject({
    serviceAccountName: z.string(),
    automountServiceAccountToken: z.boolean(),
    terminationGracePeriodSeconds: z.number().optional(),
    securityContext: z.object({ runAsNonRoot: z.boolean(), runAsUser: z.number(), runAsGroup: z.number() }),
    containers: z.tuple([containerSchema]),
    volumes: z.array(
      z.object({ name: z.string(), emptyDir: z.object({ medium: z.string(), sizeLimit: z.string() }).optional() }),
    ),
  }),
});
const workloadSchema = z.object({ spec: z.object({ template: podSchema }) });

/** The pod that a Deployment, a StatefulSet or a Job makes. */
export function workloadOf(object: KubernetesObject) {
  const { metadata, spec } = workloadSchema.parse(object).spec.template;
  const { containers, ...pod } = spec;
  return { name: object.metadata.name, labels: metadata.labels, pod, container: containers[0] };
}

export const isWorkload = ({ kind }: KubernetesObject) => ['Deployment', 'StatefulSet', 'Job'].includes(kind);
