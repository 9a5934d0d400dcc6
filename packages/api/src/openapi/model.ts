/** As much of OpenAPI 3.1 as the documents use (OpenAPI Specification 3.1.1, section 4), and what a service says to get one. */
import type { z } from 'zod';
import type { ApiError } from '../http/errors.js';

/** JSON Schema 2020-12. */
export type JsonSchema = Readonly<Record<string, unknown>>;
export type Named<Value> = Readonly<Record<string, Value>>;

export interface Reference {
  readonly $ref: string;
}

export interface Example {
  readonly summary: string;
  readonly value: unknown;
}

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required: boolean;
  readonly description: string;
  readonly style?: 'form';
  readonly explode?: boolean;
  readonly allowEmptyValue?: boolean;
  readonly schema: JsonSchema;
  readonly examples?: Named<Example>;
  /** Meterline's own: the platform's API does not have it. */
  readonly 'x-extension'?: true;
}

export interface Header {
  readonly description: string;
  readonly required?: boolean;
  readonly schema: JsonSchema;
}

export interface MediaType {
  readonly schema: JsonSchema;
  readonly examples?: Named<Example>;
}
/** By media type. All examples are in JSON. */
type Content = Readonly<Record<'application/json', MediaType>> & Named<MediaType>;

export interface Response {
  readonly description: string;
  readonly headers?: Named<Header | Reference>;
  readonly content?: Content;
}

export type Method = 'get' | 'post' | 'patch' | 'delete';

/** An example request with its response. */
export interface OperationExample {
  readonly summary: string;
  /** The values in the path, the query and the headers, by name. */
  readonly parameters?: Named<unknown>;
  /** Undefined for a request without a body. */
  readonly body?: unknown;
  /** Undefined for a response without a body. */
  readonly response?: unknown;
}

/** What is particular about an operation; the document adds what follows from it. Schemas are named as in the components. */
export interface OperationSketch {
  readonly method: Method;
  readonly path: string;
  readonly operationId: string;
  readonly tag: string;
  readonly summary: string;
  readonly description: string;
  /** The platform's API does not have it. */
  readonly isExtension?: true;
  readonly query?: Named<z.ZodType>;
  /** Parameters that are neither in the path nor checked by a schema in `query`, besides the version. */
  readonly otherParameters?: readonly Parameter[];
  /** One of these schemas; none: there is no body. */
  readonly body?: readonly string[];
  /** Its other formats, by media type. */
  readonly otherFormats?: Named<JsonSchema>;
  readonly success: {
    readonly status?: '201' | '202' | '204';
    readonly description: string;
    /** One of these; none: there is no body. */
    readonly schemas: readonly string[];
    readonly headers?: Response['headers'];
  };
  readonly otherResponses?: Named<Response | Reference>;
  readonly examples: Named<OperationExample>;
  /** Names of the service's error responses. */
  readonly errors: readonly string[];
}

/** A response that describes an error, with one as its example; its headers are those of the example. */
export interface ErrorSketch {
  readonly description: string;
  readonly error: ApiError;
  /** Of a body that has other members as well: these, and its schema. */
  readonly members?: JsonSchema;
  readonly schema?: JsonSchema;
}

export interface DocumentSketch {
  readonly title: string;
  readonly summary: string;
  readonly description: string;
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly operations: readonly OperationSketch[];
  readonly schemas: Named<z.core.$ZodType>;
  readonly errors: Named<ErrorSketch>;
  /** Those of its headers that no error response and not every response has. */
  readonly headers?: Named<Header>;
}
