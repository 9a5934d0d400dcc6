/** Whether a process runs, in the document of each service. What is served is in http/health.ts. */
import type { OperationSketch } from './document.js';
import { schemaReference } from './schemas.js';

export function healthOperation(errors: OperationSketch['errors']): OperationSketch {
  return {
    path: '/healthz',
    method: 'get',
    operationId: 'getHealth',
    tag: 'Health',
    summary: 'Does the process run?',
    description: 'Asks no other server.',
    success: { description: 'It does.', schema: schemaReference('Health') },
    examples: { up: { summary: 'The process runs', parameters: {}, answer: { status: 'ok' } } },
    errors,
  };
}
