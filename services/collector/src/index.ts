export { type CollectorDependencies, createApp } from './app.js';
export { BytesUnderWay } from './bytes-under-way.js';
export { EVENT_ID_NAMESPACE, eventIdOf, eventIdOfCloudEvent } from './events/event-ids.js';
export { createOpenApiDocument } from './openapi/document.js';
