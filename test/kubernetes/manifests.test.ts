/** The manifests of deploy/kubernetes are valid, and what they refer to is there. No cluster and no kubectl is needed. */
import { expect, it } from '@jest/globals';
import { z } from 'zod';
import { both, compose, FOLDERS, literalOf, NAMES, ofKind, PROGRAMS, settings, workloads } from './compose.js';
import { fileOf, kustomizationOf, objectsOf } from './manifests.js';
import { problemsOf } from './validation.js';

const namesOf = (kind: string) => ofKind(kind).map(({ metadata }) => metadata.name);

it.each(FOLDERS)('each object of %s is valid, and has no unknown field', async (folder) => {
  const objects = await objectsOf(folder);
  expect(objects.length).toBeGreaterThan(0);
  expect(objects.map((object) => [object.metadata.name, problemsOf(object)])).toEqual(
    objects.map((object) => [object.metadata.name, []]),
  );
});

it.each([
  ['an unknown field', { spec: { replicaz: 2 } }, 'unknown field /spec/replicaz'],
  ['a value of another type', { spec: { ports: [{ port: '8080' }] } }, 'port must be integer'],
  ['an unknown kind', { kind: 'Servise' }, 'no model of Servise'],
])('an object with a mistake is rejected: %s', (_, mistake, message) => {
  const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'query', labels: {} }, ...mistake };
  expect(problemsOf(service).join()).toContain(message);
});

it.each(NAMES)('%s has a service account of its own, without a token', (name) => {
  const account = ofKind('ServiceAccount').find(({ metadata }) => metadata.name === name);
  expect(account?.['automountServiceAccountToken']).toBe(false);
  expect(both(name).pod).toMatchObject({ serviceAccountName: name, automountServiceAccountToken: false });
});

it('each required secret is one of those that docker/secrets.sh makes', async () => {
  const script = await fileOf('docker/secrets.sh');
  const [, list = ''] = /for name in ([A-Z_ \\\n]+); do/.exec(script) ?? [];
  const passwords = list.split(/[\s\\]+/).map((name) => `${name}_PASSWORD`);
  const others = [...script.matchAll(/^ *echo "([A-Z_]+)=/gm)].map(([, name = '']) => name);
  const variables = workloads.flatMap(({ container }) => container.env);
  const refs = variables.flatMap(({ valueFrom }) => valueFrom?.secretKeyRef ?? []).filter(({ optional }) => !optional);
  expect(refs.length).toBeGreaterThan(20);
  expect(refs.filter(({ name, key }) => name !== 'meterline' || ![...passwords, ...others].includes(key))).toEqual([]);
});

it('the base has each setting that a pod requires, and no other', () => {
  const variables = workloads.flatMap(({ container }) => container.env);
  const refs = variables.flatMap(({ valueFrom }) => valueFrom?.configMapKeyRef ?? []);
  const required = new Set(refs.filter(({ optional }) => !optional).map(({ key }) => key));
  expect([...required].sort()).toEqual([...settings.keys()].sort());
  expect(refs.filter(({ name }) => name !== 'meterline')).toEqual([]);
});

const selectorSchema = z.object({
  matchLabels: z.record(z.string(), z.string()).default({}),
  matchExpressions: z
    .array(z.object({ key: z.string(), operator: z.literal('In'), values: z.array(z.string()) }))
    .default([]),
});

/** The names of the workloads whose pods a selector selects, in order. */
function selected(selector: unknown): string[] {
  const { matchLabels, matchExpressions } = selectorSchema.parse(selector);
  const fitting = workloads.filter(
    ({ labels }) =>
      Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
      matchExpressions.every(({ key, values }) => values.includes(labels[key] ?? '')),
  );
  return fitting.map(({ name }) => name).sort();
}

const selectingSchema = z.object({ selector: z.record(z.string(), z.unknown()) });

it.each(['Service', 'PodDisruptionBudget', 'Deployment', 'StatefulSet'])(
  'each %s selects the pods of its name, and no others',
  (kind) => {
    const objects = ofKind(kind);
    expect(objects.length).toBeGreaterThan(1);
    for (const { metadata, ...object } of objects) {
      const { selector } = selectingSchema.parse(object['spec']);
      expect(selected(kind === 'Service' ? { matchLabels: selector } : selector)).toEqual([metadata.name]);
    }
  },
);

const spreadSchema = z.object({
  topologySpreadConstraints: z.array(z.object({ topologyKey: z.string(), labelSelector: z.unknown() })),
});

it('each service has a disruption budget, and its pods are spread over nodes and zones', () => {
  const services = PROGRAMS.filter((name) => literalOf(name, 'ADMIN_PORT') !== undefined);
  expect(services).toHaveLength(4);
  expect(namesOf('PodDisruptionBudget')).toEqual(services);
  for (const name of services) {
    const { topologySpreadConstraints } = spreadSchema.parse(both(name).pod);
    expect(
      topologySpreadConstraints.map(({ topologyKey, labelSelector }) => [topologyKey, selected(labelSelector)]),
    ).toEqual([
      ['kubernetes.io/hostname', [name]],
      ['topology.kubernetes.io/zone', [name]],
    ]);
  }
});

const scalerSchema = z.object({ scaleTargetRef: z.object({ kind: z.string(), name: z.string() }) });

it('each autoscaler scales the Deployment of its name', () => {
  const scalers = ofKind('HorizontalPodAutoscaler');
  expect(scalers).toHaveLength(3);
  for (const { metadata, ...object } of scalers) {
    expect(scalerSchema.parse(object['spec']).scaleTargetRef).toEqual({ kind: 'Deployment', name: metadata.name });
    expect(namesOf('Deployment')).toContain(metadata.name);
  }
});

it('the ingress leads to both Services, and lets bodies pass that the collector takes', async () => {
  const [ingress] = ofKind('Ingress');
  const backend = /"service":\{"name":"(\w+)","port":\{"name":"http"\}/g;
  expect([...JSON.stringify(ingress).matchAll(backend)].map(([, name]) => name)).toEqual(['query', 'collector']);
  const formats = await fileOf('services/collector/src/events/formats.ts');
  const [, mebibytes] = /MAX_BODY_BYTES = (\d+) \* 1024 \* 1024/.exec(formats) ?? [];
  expect(ingress?.metadata['annotations']).toMatchObject({
    'nginx.ingress.kubernetes.io/proxy-body-size': `${mebibytes}m`,
  });
});

const policySchema = z.object({
  podSelector: z.unknown(),
  policyTypes: z.array(z.string()),
  ingress: z
    .array(z.object({ from: z.array(z.looseObject({ podSelector: z.unknown() })).optional(), ports: z.unknown() }))
    .optional(),
  egress: z.unknown().optional(),
});
const policyOf = (name: string) =>
  policySchema.parse(ofKind('NetworkPolicy').find(({ metadata }) => metadata.name === name)?.['spec']);

it('without a further policy nothing reaches a pod, and a pod reaches name servers alone', () => {
  const { podSelector, policyTypes, ingress, egress } = policyOf('meterline');
  expect(selected(podSelector)).toEqual([...NAMES].sort());
  expect(policyTypes).toEqual(['Ingress', 'Egress']);
  expect(ingress).toBeUndefined();
  expect(egress).toEqual([{ ports: ['UDP', 'TCP'].map((protocol) => ({ protocol, port: 53 })) }]);
});

it.each([
  ['clickhouse', 'CLICKHOUSE_URL'],
  ['redis', 'REDIS_URL'],
])('policies let the programs reach %s that have %s, and no others', (server, variable) => {
  const clients = NAMES.filter((name) => compose[name]?.environment[variable] !== undefined).sort();
  const ports = both(server).container.ports.map(({ containerPort }) => ({ port: containerPort }));
  const [outgoing, incoming] = [policyOf(`to-${server}`), policyOf(server)];
  expect(selected(outgoing.podSelector)).toEqual(clients);
  expect(outgoing.egress).toEqual([{ ports }]);
  const [from, ...more] = incoming.ingress ?? [];
  expect(selected(incoming.podSelector)).toEqual([server]);
  expect(from?.from?.map(({ podSelector }) => selected(podSelector))).toEqual([clients]);
  expect(from?.ports).toEqual(ports);
  expect(more).toEqual([]);
});

const monitorSchema = z.object({ selector: z.unknown(), podMetricsEndpoints: z.unknown() });

it('Prometheus scrapes each service at its admin port', () => {
  const [monitor] = ofKind('PodMonitor');
  const { selector, podMetricsEndpoints } = monitorSchema.parse(monitor?.['spec']);
  expect(podMetricsEndpoints).toEqual([{ port: 'admin' }]);
  expect(selected(selector)).toEqual(expect.arrayContaining(['alerts', 'collector', 'ingest', 'query']));
});

it('the example replaces the image of each program', async () => {
  const images = new Set(PROGRAMS.map((name) => both(name).container.image));
  expect((await kustomizationOf('example')).images.map(({ name }) => name).sort()).toEqual([...images].sort());
});

it.each([
  ['docs/operations.md', 'exec -i deploy/cli --'],
  ['deploy/kubernetes/README.md', 'exec deploy/cli --'],
])('%s runs the command line as the entrypoint of its image does', async (file, before) => {
  const [, entrypoint = '[]'] = /^ENTRYPOINT (\[.*\])$/m.exec(await fileOf('Dockerfile')) ?? [];
  const command = [before, ...z.array(z.string()).parse(JSON.parse(entrypoint))].join(' ');
  const lines = (await fileOf(file)).split('\n').filter((line) => line.includes('deploy/cli'));
  expect(lines.length).toBeGreaterThan(0);
  expect(lines.filter((line) => !line.includes(command))).toEqual([]);
});
