/** As much of OpenAPI 3.1 as the document uses. Source: OpenAPI Specification 3.1.1, section 4. */

/** JSON Schema 2020-12. */
export type JsonSchema = Readonly<Record<string, unknown>>;

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
  readonly examples?: Readonly<Record<string, Example>>;
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
  readonly examples?: Readonly<Record<string, Example>>;
}

export interface Response {
  readonly description: string;
  readonly headers?: Readonly<Record<string, Header | Reference>>;
  readonly content?: Readonly<Record<'application/json', MediaType>>;
}

export interface Reference {
  readonly $ref: string;
}

export interface RequestBody {
  readonly required: true;
  /** By media type. All examples are in JSON. */
  readonly content: Readonly<Record<'application/json', MediaType>> & Readonly<Record<string, MediaType>>;
}

export interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description: string;
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters: readonly Parameter[];
  readonly requestBody?: RequestBody;
  readonly responses: Readonly<Record<string, Response | Reference>>;
  /** Meterline's own: the platform's API does not have it. */
  readonly 'x-extension'?: true;
}

export type Method = 'get' | 'post' | 'delete';

export interface OpenApiDocument {
  readonly openapi: '3.1.1';
  readonly info: {
    readonly title: string;
    readonly version: string;
    readonly summary: string;
    readonly description: string;
    readonly license: { readonly name: string; readonly identifier: string };
  };
  readonly servers: readonly { readonly url: string; readonly description: string }[];
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Partial<Record<Method, Operation>>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, JsonSchema>>;
    readonly responses: Readonly<Record<string, Response>>;
    readonly headers: Readonly<Record<string, Header>>;
    readonly securitySchemes: Readonly<Record<string, Readonly<Record<string, string>>>>;
  };
}

/** An example request with its answer. */
export interface OperationExample {
  readonly summary: string;
  /** The values in the path, the query and the headers, by name. */
  readonly parameters: Readonly<Record<string, unknown>>;
  /** Undefined for a request without a body. */
  readonly body?: unknown;
  /** Undefined for an answer without a body. */
  readonly answer?: unknown;
}

export type Examples = Readonly<Record<string, OperationExample>>;
