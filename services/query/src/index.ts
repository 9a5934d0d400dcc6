export { Admission, type AdmissionLimits } from './admission/admission.js';
export { createApp, type QueryDependencies } from './app.js';
export { readEnv } from './env.js';
export { StoredGroups } from './metrics/pages.js';
export { ResponseCache } from './metrics/response-cache.js';
export { createOpenApiDocument } from './openapi/document.js';
