/** Each program and server as docker-compose.yml has it, and as deploy/kubernetes does. */
import { parse } from 'yaml';
import { z } from 'zod';
import { COMPONENTS, fileOf, isWorkload, kustomizationOf, objectsOf, workloadOf } from './manifests.js';

export const FOLDERS = ['base', ...COMPONENTS.map((name) => `components/${name}`)];
const objects = (await Promise.all(FOLDERS.map(objectsOf))).flat();
export const ofKind = (kind: string) => objects.filter((object) => object.kind === kind);
export const workloads = objects.filter(isWorkload).map(workloadOf);

const { configMapGenerator } = await kustomizationOf('base');
const literals = configMapGenerator.flatMap((each) => each.literals.map((text) => text.split(/=(.*)/s, 2)));
/** The settings of the base, by name. */
export const settings = new Map(literals.map(([name = '', value = '']) => [name, value]));

const composeSchema = z.object({
  services: z.record(
    z.string(),
    z.object({
      image: z.string().optional(),
      build: z.object({ target: z.string() }).optional(),
      command: z.array(z.string()).optional(),
      user: z.string(),
      environment: z.record(z.string(), z.string().nullable()).default({}),
      read_only: z.boolean(),
      cap_drop: z.array(z.string()),
      security_opt: z.array(z.string()),
      tmpfs: z.array(z.string()).default([]),
      volumes: z.array(z.string()).default([]),
      mem_limit: z.string().optional(),
      stop_grace_period: z.string().optional(),
      healthcheck: z
        .object({
          test: z.array(z.string()),
          interval: z.string(),
          timeout: z.string(),
          retries: z.number().default(3),
          start_period: z.string().default('0s'),
        })
        .optional(),
    }),
  ),
});
export const compose = composeSchema.parse(parse(await fileOf('docker-compose.yml'), { merge: true })).services;

/** It gives a volume to its owner, as `fsGroup` does in Kubernetes. */
const OF_COMPOSE_ALONE = ['backups'];
export const NAMES = Object.keys(compose).filter((name) => !OF_COMPOSE_ALONE.includes(name));
/** Meterline's own programs; the rest are servers. */
export const PROGRAMS = NAMES.filter((name) => compose[name]?.build);

export function both(name: string) {
  const [service, workload] = [compose[name], workloads.find((each) => each.name === name)];
  if (!service || !workload) throw new Error(`${name} is not in both docker-compose.yml and deploy/kubernetes`);
  return { service, ...workload };
}

/** The text of a variable that the manifest itself sets. */
export const literalOf = (name: string, variable: string) =>
  both(name).container.env.find((each) => each.name === variable)?.value;
