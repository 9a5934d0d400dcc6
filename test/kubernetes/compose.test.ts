/** The manifests of deploy/kubernetes say what docker-compose.yml says of users, rights, variables, ports, limits, probes and stops. */
import { expect, it } from '@jest/globals';
import { both, compose, literalOf, NAMES, ofKind, PROGRAMS, settings, workloads } from './compose.js';
import type { Variable } from './manifests.js';

const secondsOf = (text = '0s') => Number(text.replace(/s$/, ''));
/** What compose takes for a value when .env has none. */
const byDefault = (text: string) => text.replace(/\$\{\w+:-([^}]*)\}/g, '$1');

it('deploy/kubernetes has the programs and servers of docker-compose.yml, and no others', () => {
  expect(workloads.map(({ name }) => name).sort()).toEqual([...NAMES].sort());
});

/** The value of a variable, with a secret, or a setting that the base leaves open, as `${NAME}`. */
function resolved({ value = '', valueFrom }: Variable, all: readonly Variable[]): string {
  const { secretKeyRef, configMapKeyRef } = valueFrom ?? {};
  if (configMapKeyRef) return settings.get(configMapKeyRef.key) ?? `\${${configMapKeyRef.key}}`;
  if (secretKeyRef) return `\${${secretKeyRef.key}}`;
  return value.replace(/\$\((\w+)\)/g, (_, name: string) => {
    const variable = all.find((each) => each.name === name);
    if (!variable) throw new Error(`$(${name}) is no variable of this container`);
    return resolved(variable, all);
  });
}

/** In Kubernetes requests arrive until every node knows that the pod stops. */
const OF_KUBERNETES_ALONE = ['STOP_DELAY_MS'];
/** Taken from the shell in which somebody runs a command. */
const OF_THE_SHELL = ['METERLINE_API_KEY', 'METERLINE_ACCOUNT', 'METERLINE_EMITTER_KEY'];

it.each(NAMES)('%s has the variables of docker-compose.yml, from the same settings and secrets', (name) => {
  const { service, container } = both(name);
  const parts = container.env.flatMap(({ value = '' }) => [...value.matchAll(/\$\((\w+)\)/g)].map(([, part]) => part));
  const extra = [...parts, ...OF_KUBERNETES_ALONE];
  const own = container.env.filter((variable) => !extra.includes(variable.name));
  const wanted = Object.entries(service.environment).filter(([variable]) => !OF_THE_SHELL.includes(variable));
  expect(own.map((variable) => variable.name).sort()).toEqual(wanted.map(([variable]) => variable).sort());
  for (const variable of own) {
    const text = service.environment[variable.name] ?? `\${${variable.name}}`;
    // Open, for the overlay to set, or what compose takes by default.
    const open = text.replace(/\$\{(\w+):[^}]*\}/g, '$${$1}');
    expect([open, byDefault(text)].map((value) => `${variable.name}=${value}`)).toContain(
      `${variable.name}=${resolved(variable, container.env)}`,
    );
  }
});

/** The users of the images by number: Kubernetes cannot see that a name is not root's. */
const USERS: Readonly<Record<string, string>> = { node: '1000:1000' };

it.each(NAMES)('%s has the user, the rights and the folders of docker-compose.yml', (name) => {
  const { service, pod, container } = both(name);
  const { runAsNonRoot, runAsUser, runAsGroup } = pod.securityContext;
  expect(runAsNonRoot).toBe(true);
  expect(`${runAsUser}:${runAsGroup}`).toBe(USERS[service.user] ?? service.user);
  expect(container.securityContext).toEqual({
    readOnlyRootFilesystem: service.read_only,
    allowPrivilegeEscalation: !service.security_opt.includes('no-new-privileges:true'),
    capabilities: { drop: service.cap_drop },
  });
  const inMemory = pod.volumes.filter(({ emptyDir }) => emptyDir?.medium === 'Memory').map((volume) => volume.name);
  const mounts = container.volumeMounts.map(({ mountPath, readOnly, name: volume }) => {
    if (inMemory.includes(volume)) return `memory at ${mountPath}`;
    return readOnly ? `${mountPath} to read` : mountPath;
  });
  const volumes = service.volumes.map((text) => text.replace(/^[^:]+:/, '').replace(/:ro$/, ' to read'));
  const tmpfs = service.tmpfs.map((text) => `memory at ${text.split(':')[0]}`);
  expect(mounts.sort()).toEqual([...volumes, ...tmpfs].sort());
});

it.each(NAMES)('%s runs the image and the command of docker-compose.yml', (name) => {
  const { service, container } = both(name);
  expect(container.image).toBe(service.build ? `meterline-${service.build.target}` : service.image);
  // cli waits for commands; the others keep the entrypoint of their images.
  expect(container.command ?? container.args).toEqual(name === 'cli' ? ['sleep', 'infinity'] : service.command);
});

it.each(NAMES.filter((name) => compose[name]?.mem_limit))('%s has the memory limit of docker-compose.yml', (name) => {
  const { service, container } = both(name);
  expect(container.resources.limits.memory).toBe(byDefault(service.mem_limit ?? '').replace(/g$/, 'Gi'));
});

it.each(NAMES.filter((name) => compose[name]?.stop_grace_period))(
  '%s has the time to stop of docker-compose.yml after STOP_DELAY_MS, which only those with a Service have',
  (name) => {
    const { service, pod } = both(name);
    const delay = Number(literalOf(name, 'STOP_DELAY_MS') ?? '0') / 1000;
    expect(pod.terminationGracePeriodSeconds).toBe(secondsOf(service.stop_grace_period) + delay);
    expect(delay > 0).toBe(literalOf(name, 'PORT') !== undefined);
  },
);

it.each(PROGRAMS)('%s has the ports of its variables, and a Service if it has PORT', (name) => {
  const ports = [...portsOf(name)];
  expect(both(name).container.ports).toEqual(ports.map(([port, number]) => ({ name: port, containerPort: number })));
  const [service] = ofKind('Service').filter(({ metadata }) => metadata.name === name);
  const [http] = ports.filter(([port]) => port === 'http');
  expect(service?.['spec']).toEqual(
    http && expect.objectContaining({ ports: [{ name: 'http', port: http[1], targetPort: 'http' }] }),
  );
});

/** The ports that the variables of a program name. */
function portsOf(name: string): Map<string, number> {
  const variables = { http: 'PORT', admin: 'ADMIN_PORT' };
  const values = Object.entries(variables).map(([port, variable]) => [port, literalOf(name, variable)] as const);
  return new Map(values.flatMap(([port, value]) => (value === undefined ? [] : [[port, Number(value)] as const])));
}

const checked = NAMES.flatMap((name) => {
  const { healthcheck } = compose[name] ?? {};
  return healthcheck ? [{ name, healthcheck }] : [];
});

it.each(checked)('$name is ready when the health check of docker-compose.yml passes', ({ name, healthcheck }) => {
  const { ports, readinessProbe } = both(name).container;
  const { httpGet, exec, ...times } = readinessProbe ?? {};
  const [how, ...command] = healthcheck.test;
  const port = ports.find((each) => each.name === httpGet?.port)?.containerPort;
  if (httpGet) expect(command.join(' ')).toContain(`fetch('http://127.0.0.1:${port}${httpGet.path}')`);
  else {
    const shell = how === 'CMD-SHELL' ? ['sh', '-c'] : [];
    expect(exec?.command).toEqual([...shell, ...command.map((text) => text.replaceAll('$$', '$'))]);
  }
  expect(times).toEqual({
    periodSeconds: secondsOf(healthcheck.interval),
    timeoutSeconds: secondsOf(healthcheck.timeout),
    failureThreshold: healthcheck.retries,
  });
});

it.each(PROGRAMS)(
  '%s is restarted only by /healthz, and has at least the time to start of docker-compose.yml',
  (name) => {
    const { startupProbe, livenessProbe } = both(name).container;
    const path = literalOf(name, 'ADMIN_PORT') === undefined ? undefined : '/healthz';
    expect([startupProbe?.httpGet?.path, livenessProbe?.httpGet?.path]).toEqual([path, path]);
    const { periodSeconds = 0, failureThreshold = 0 } = startupProbe ?? {};
    const start = secondsOf(compose[name]?.healthcheck?.start_period);
    expect(periodSeconds * failureThreshold).toBeGreaterThanOrEqual(start);
  },
);
