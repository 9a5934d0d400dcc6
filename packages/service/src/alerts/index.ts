/** Alerts and their webhooks: what Redis keeps of them, and where they may go. */
export { type Alert, type AlertSettings, periodAt, settingsOf, validSecrets, webhookPayload } from './alert.js';
export * from './alerts.js';
export * from './deliveries.js';
export * from './webhook-target.js';
