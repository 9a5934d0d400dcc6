export { ByteBudget, type Reservation } from './admission/byte-budget.js';
export * from './admission/fair-permits.js';
export * from './admission/principal.js';
export * from './admission/rate-limits.js';
export { requireRoomForResponse, responseBudget, sendJson } from './admission/response-bytes.js';
export * from './application.js';
export { type ClaimPath, DEFAULT_ACCOUNT_CLAIMS } from './auth/account-claims.js';
export * from './auth/authenticate.js';
export {
  type Caller,
  isOperator,
  isProvisioner,
  mayWrite,
  principalOf,
  requireAdmin,
  requireKeyManager,
  requireLister,
  requireMembership,
  requireProvisioner,
  requireReader,
  requireScope,
  requireSender,
  requireWriter,
  senderRequired,
} from './auth/permissions.js';
export { METADATA_PATH, noTokens } from './auth/protected-resource.js';
export { createTokenVerifier, type TokenVerifier } from './auth/tokens.js';
export * from './environment.js';
export { hostService } from './host.js';
export {
  ApiError,
  adminsOnly,
  ClientGone,
  errorBody,
  goneSignal,
  invalidBody,
  invalidParameters,
  methodNotAllowed,
  notAMember,
  notFound,
  orAuthUnavailable,
  orUnavailable,
  type ParameterProblem,
  tooMany,
  tooManyRequests,
  unauthorized,
  unavailable,
} from './http/errors.js';
export { requireFit } from './http/health.js';
export * from './http/query-parameters.js';
export { applyVersion, rawQuery } from './http/request-checks.js';
export { requestMetrics } from './http/request-observation.js';
export { noteInLog, requestIdOf } from './http/request-record.js';
export { onResponseEnd } from './http/response-end.js';
export { assetRoute, builtPage, type PageSettings, pageRoute, pageSettingsRoute } from './http/web-page.js';
export type {
  ErrorSketch,
  OperationSketch,
  Parameter as OpenApiParameter,
  Response as OpenApiResponse,
} from './openapi/common.js';
export {
  COMMON_ERRORS,
  COMMON_SCHEMAS,
  commonOperations,
  headerReference,
  LIMIT_HEADERS,
} from './openapi/common.js';
export * from './openapi/document.js';
export { type RunningServer, type ServerOptions, startServer } from './server.js';
