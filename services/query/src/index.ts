export { Admission, type AdmissionLimits } from './admission/admission.js';
export { createApp, createRoutes, type QueryDependencies } from './app.js';
export { readEnv } from './env.js';
export { KeptAnswers } from './metrics/kept-answers.js';
export { createCellsReader } from './metrics/readable-cells.js';
export { createOpenApiDocument } from './openapi/document.js';
