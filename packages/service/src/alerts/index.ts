/** Stores alerts and webhook deliveries, and decides to which URLs webhooks may be sent. */
export { type Alert, type AlertSettings, periodAt, settingsOf, validSecrets, webhookPayload } from './alert.js';
export * from './alerts.js';
export * from './deliveries.js';
export * from './webhook-target.js';
