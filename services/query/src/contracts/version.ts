/** Which version of the API a request is for. Source: the API specification, section "Versioning". */

import type { IncomingMessage } from 'node:http';
import { API_VERSIONS, type ApiVersion, EARLIEST_API_VERSION, isApiVersion } from '@meterline/catalog';
import type { Response } from 'express';
import { ApiError } from '../http/errors.js';

export const VERSION_HEADER = 'Svc-Version';

/** Reads the version and tells the caller which one applies. @throws ApiError `invalid_api_version` */
export function applyVersion({ headers }: IncomingMessage, response: Response): ApiVersion {
  const wanted = String(headers['svc-version'] ?? EARLIEST_API_VERSION);
  if (!isApiVersion(wanted)) {
    throw new ApiError(
      400,
      'invalid_api_version',
      `${JSON.stringify(wanted)} is not a version of this API; the valid ones are ${API_VERSIONS.join(', ')}.`,
    );
  }
  response.set(VERSION_HEADER, wanted);
  return wanted;
}
