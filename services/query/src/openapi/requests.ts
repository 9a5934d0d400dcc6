/** The examples of an operation as commands for a shell. */
import type { Operation, Parameter } from './model.js';

export interface CurlExample {
  readonly summary: string;
  readonly command: string;
  /** Indented JSON; undefined for an answer without a body. */
  readonly answer: string | undefined;
}

interface Place {
  readonly path: string;
  readonly method: string;
  readonly operation: Operation;
}

/** `$METERLINE_URL` and `$METERLINE_API_KEY` stand for what only the reader knows. */
export function curlExamples({ path, method, operation }: Place): CurlExample[] {
  const answers = answersOf(operation);
  return exampleNames(operation).map((name) => {
    const { summary, value } = answers[name] ?? { summary: operation.summary, value: undefined };
    const headers = operation.security === undefined ? ['Authorization: Bearer $METERLINE_API_KEY'] : [];
    for (const { name: header, value: text } of sent(operation, 'header', name)) headers.push(`${header}: ${text}`);
    const options = [
      ...(method === 'get' ? [] : [`-X ${method.toUpperCase()}`]),
      ...headers.map((text) => `-H "${text}"`),
    ];
    const command = ['curl -s', ...options, `"$METERLINE_URL${requestTarget(path, operation, name)}"`].join(' \\\n  ');
    return { summary, command, answer: value === undefined ? undefined : JSON.stringify(value, null, 2) };
  });
}

/** Path and query of an example. */
export function requestTarget(path: string, operation: Operation, example: string): string {
  let target = path;
  for (const { name, value } of sent(operation, 'path', example))
    target = target.replace(`{${name}}`, encodeURIComponent(value));
  const query = sent(operation, 'query', example).map(({ name, value }) => `${name}=${value}`);
  return query.length === 0 ? target : `${target}?${query.join('&')}`;
}

function exampleNames(operation: Operation): string[] {
  const ofParameters = operation.parameters.flatMap(({ examples = {} }) => Object.keys(examples));
  return [...new Set([...Object.keys(answersOf(operation)), ...ofParameters])];
}

function answersOf({ responses }: Operation) {
  const success = responses['200'];
  return (success && 'content' in success && success.content?.['application/json'].examples) || {};
}

function sent({ parameters }: Operation, place: Parameter['in'], example: string): { name: string; value: string }[] {
  return parameters.flatMap(({ name, in: where, examples }) => {
    const value = where === place ? examples?.[example]?.value : undefined;
    return value === undefined ? [] : [{ name, value: Array.isArray(value) ? value.join(',') : String(value) }];
  });
}
