import { describe, expect, it } from '@jest/globals';
import { EnvError } from '../environment.js';
import { readTracingSettings } from './settings.js';

const read = (variables: NodeJS.ProcessEnv) => readTracingSettings(variables, 'meterline-query');
const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };
const ON = { protocol: 'http/protobuf', serviceName: 'meterline-query' };

describe('tracing', () => {
  it.each([
    ['no variable', {}],
    ['empty ones', { OTEL_EXPORTER_OTLP_ENDPOINT: '', OTEL_TRACES_EXPORTER: ' ' }],
    ['a name and a protocol alone', { OTEL_SERVICE_NAME: 'x', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }],
    ['an endpoint and OTEL_TRACES_EXPORTER=none', { ...ENDPOINT, OTEL_TRACES_EXPORTER: 'none' }],
    ['an endpoint and OTEL_SDK_DISABLED=True', { ...ENDPOINT, OTEL_SDK_DISABLED: 'True' }],
  ])('is off with %s', (_, variables) => {
    expect(read(variables)).toBeUndefined();
  });

  it.each([
    ['an endpoint', ENDPOINT, ON],
    ['an endpoint for traces', { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://collector:4318/v1/traces' }, ON],
    ['OTEL_TRACES_EXPORTER=otlp', { OTEL_TRACES_EXPORTER: 'otlp' }, ON],
    ['OTEL_SDK_DISABLED=false', { ...ENDPOINT, OTEL_SDK_DISABLED: 'false' }, ON],
    ['another protocol', { ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' }, { ...ON, protocol: 'http/json' }],
    [
      'a protocol for traces, which goes before',
      { ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc', OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json' },
      { ...ON, protocol: 'http/json' },
    ],
    ['a name', { ...ENDPOINT, OTEL_SERVICE_NAME: 'billing' }, { ...ON, serviceName: 'billing' }],
  ])('is on with %s', (_, variables, expected) => {
    expect(read(variables)).toEqual(expected);
  });

  it.each([
    [{ ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, 'OTEL_EXPORTER_OTLP_PROTOCOL must be one of'],
    [{ OTEL_TRACES_EXPORTER: 'zipkin' }, 'OTEL_TRACES_EXPORTER must be otlp or none'],
  ])('is refused with %j', (variables, message) => {
    expect(() => read(variables)).toThrow(EnvError);
    expect(() => read(variables)).toThrow(message);
  });
});
