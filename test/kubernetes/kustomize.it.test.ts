/** What `kubectl kustomize` makes of deploy/kubernetes: the base, each component on it, all of them together, and the example. */
import { spawnSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { testFolder } from '../harness/test-folder.js';
import { COMPONENTS, fileOf, isWorkload, MANIFESTS, objectsIn, objectsOf, workloadOf } from './manifests.js';
import { problemsOf } from './validation.js';

const { stdout } = spawnSync('kubectl', ['version', '--client', '--output=json'], { encoding: 'utf8' });
/** Older ones, such as that of Debian 12, have a kustomize without components, and do not say which. */
const isInstalled = /"kustomizeVersion": "v[5-9]/.test(stdout ?? '');
const inIt = isInstalled ? it : it.skip;
// A run prints no names of skipped tests.
if (!isInstalled) console.warn('NOT RUN, because there is no kubectl 1.27 or newer: what kustomize renders');

const folder = testFolder();

function render(path: string) {
  const { status, stdout: text, stderr } = spawnSync('kubectl', ['kustomize', path], { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  return objectsIn(text);
}

/** The base with components, in an overlay of the test's own. */
async function renderWith(components: readonly string[]) {
  const path = folder(components.join('-') || 'base');
  await mkdir(path, { recursive: true });
  const from = (name: string) => relative(path, join(MANIFESTS, name));
  const overlay = {
    resources: [from('base')],
    components: components.map((name) => from(`components/${name}`)),
    images: [{ name: 'meterline-query', newName: 'registry.example.com/query', newTag: '1.2.3' }],
    configMapGenerator: [{ name: 'meterline', behavior: 'merge', literals: ['REDIS_ADDRESS=elsewhere:6379'] }],
  };
  await writeFile(join(path, 'kustomization.yaml'), JSON.stringify(overlay));
  return render(path);
}

const configMapName = /"configMap(?:KeyRef)?":\{"key":"\w+","name":"([\w-]+)"|"configMap":\{"name":"([\w-]+)"\}/g;

describe('kustomize, of kubectl 1.27 or newer', () => {
  inIt.each([[[]], ...COMPONENTS.map((name) => [[name]]), [COMPONENTS]])(
    'renders the base with %j: each object is there once, valid, and has the ConfigMaps that it names',
    async (components) => {
      const rendered = await renderWith(components);
      const read = await Promise.all(['base', ...components.map((name) => `components/${name}`)].map(objectsOf));
      const names = rendered.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
      const maps = rendered.filter(({ kind }) => kind === 'ConfigMap').map(({ metadata }) => metadata.name);
      expect(new Set(names).size).toBe(names.length);
      expect(names).toEqual(
        expect.arrayContaining(read.flat().map(({ kind, metadata }) => `${kind} ${metadata.name}`)),
      );
      expect(names.length).toBe(read.flat().length + maps.length);
      expect(
        rendered.flatMap((object) => problemsOf(object).map((text) => `${object.metadata.name}: ${text}`)),
      ).toEqual([]);
      const named = [...JSON.stringify(rendered).matchAll(configMapName)].map(([, key, volume]) => key ?? volume);
      expect(named.length).toBeGreaterThan(0);
      expect(named.filter((name) => !maps.includes(name ?? ''))).toEqual([]);
    },
  );

  inIt('renders what the other tests read, and an overlay changes images and addresses', async () => {
    const rendered = await renderWith(['trial-servers', 'cli']);
    const read = (await Promise.all(['base', 'components/cli', 'components/trial-servers'].map(objectsOf))).flat();
    const withoutHashes = (object: unknown) => JSON.parse(JSON.stringify(object).replace(/-[a-z0-9]{10}"/g, '"'));
    for (const object of read.filter(isWorkload)) {
      const found = rendered.find(
        ({ kind, metadata }) => kind === object.kind && metadata.name === object.metadata.name,
      );
      const { image, ...container } = withoutHashes(found && workloadOf(found).container);
      const { image: plain, ...expected } = workloadOf(object).container;
      expect(container).toEqual(JSON.parse(JSON.stringify(expected)));
      expect(image).toBe(plain === 'meterline-query' ? 'registry.example.com/query:1.2.3' : plain);
    }
    const maps = rendered.filter(({ metadata }) => metadata.name.startsWith('meterline-'));
    expect(maps.map((map) => map['data'])).toEqual([
      expect.objectContaining({ CLICKHOUSE_URL: 'http://clickhouse:8123', REDIS_ADDRESS: 'elsewhere:6379' }),
    ]);
  });

  inIt('autoscaled Deployments have no number of pods of their own', async () => {
    const counted = (await renderWith(['autoscaling']))
      .filter(({ kind }) => kind === 'Deployment')
      .flatMap((object) => {
        const { spec } = z.object({ spec: z.object({ replicas: z.number().optional() }) }).parse(object);
        return spec.replicas === undefined ? [] : [object.metadata.name];
      });
    expect(counted).toEqual(['alerts']);
  });

  inIt('the example is valid, in one namespace, with images of its own registry', () => {
    const rendered = render(join(MANIFESTS, 'example'));
    expect(rendered.flatMap(problemsOf)).toEqual([]);
    expect(new Set(rendered.map(({ metadata }) => metadata['namespace']))).toEqual(new Set(['meterline']));
    const images = rendered.filter(isWorkload).map((object) => workloadOf(object).container.image);
    const ours = images.filter((image) => !/^(redis|clickhouse)\b/.test(image));
    expect(ours.length).toBe(6);
    expect(ours.filter((image) => !image.startsWith('registry.example.com/meterline/'))).toEqual([]);
  });

  inIt(
    'what the example has for the component ingress, uncommented, replaces every host, certificate and path',
    async () => {
      const path = folder('example-with-ingress');
      await mkdir(path, { recursive: true });
      const example = await fileOf('deploy/kubernetes/example/kustomization.yaml');
      const overlay = example
        .replaceAll('../', `${relative(path, MANIFESTS)}/`)
        .replace(/^( *)# (?=- \S*components\/ingress$|- (?:\w+_PUBLIC_URL|TRUST_PROXY)=)/gm, '$1')
        .replace(/^# patches:\n(?:#.*\n)+/m, (patches) => patches.replace(/^# /gm, ''))
        .replaceAll('platform', 'costs')
        .replaceAll('billing', 'usage');
      await writeFile(join(path, 'kustomization.yaml'), overlay);
      const rendered = render(path);
      expect(rendered.flatMap(problemsOf)).toEqual([]);
      const published = JSON.stringify(rendered.filter(({ kind }) => kind === 'Ingress' || kind === 'ConfigMap'));
      expect(published.match(/costs\.example\.com\/usage\/?(?=")|"\/usage[^"]*"|costs-tls/g)).toEqual([
        ...['costs.example.com/usage', '"/usage/(.*)"', '"/usage-events/(.*)"', 'costs-tls'],
        ...['costs.example.com/usage/', '"/usage$"', 'costs-tls'],
      ]);
      expect(published).not.toMatch(/platform|billing/);
    },
  );
});
