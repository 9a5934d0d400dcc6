/** Validates objects of Kubernetes and of the Prometheus operator, as an API server that rejects unknown fields would. */
import { PodMonitor, PrometheusRule } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1';
import { Deployment, StatefulSet } from 'kubernetes-models/apps/v1';
import { HorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2';
import { Job } from 'kubernetes-models/batch/v1';
import { Ingress, NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1';
import { ConfigMap, Service, ServiceAccount } from 'kubernetes-models/v1';
import type { KubernetesObject } from './manifests.js';

const MODELS = [
  ...[ConfigMap, Deployment, HorizontalPodAutoscaler, Ingress, Job, NetworkPolicy, PodDisruptionBudget, PodMonitor],
  ...[PrometheusRule, Service, ServiceAccount, StatefulSet],
];

/** @returns what an API server would say against the object; empty: it is valid */
export function problemsOf(object: KubernetesObject): string[] {
  const model = MODELS.find(({ apiVersion, kind }) => apiVersion === object.apiVersion && kind === object.kind);
  if (model === undefined) return [`there is no model of ${object.kind} in ${object.apiVersion}`];
  const unread = new Set<string>();
  try {
    model.prototype.validate.call(watched(object, '', unread));
  } catch (error) {
    return [String(error)];
  }
  return [...unread].map((path) => `unknown field ${path}`);
}

/** The models accept any further field. A validator reads each field that it knows, so one that is never read is unknown. */
function watched(value: object, path: string, unread: Set<string>): object {
  const children = new Map<string, unknown>();
  for (const key of Object.keys(value)) unread.add(`${path}/${key}`);
  return new Proxy(value, {
    get(target, key) {
      const child: unknown = Reflect.get(target, key);
      if (typeof key !== 'string' || !Object.hasOwn(target, key)) return child;
      unread.delete(`${path}/${key}`);
      if (typeof child !== 'object' || child === null) return child;
      if (!children.has(key)) children.set(key, watched(child, `${path}/${key}`, unread));
      return children.get(key);
    },
  });
}
