/** Serves the API reference: GET /openapi.json for programs, and GET /docs for people, with Swagger UI from local files. */
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import type { RequestHandler } from 'express';
import { CONTENT_SECURITY_POLICY, fileRoute, REVALIDATE } from '../http/web-page.js';
import type { OpenApiDocument } from './document.js';

/** Used for content that is the same for every caller and changes only with a release. */
const CACHING = 'public, max-age=300';

export function openApiRoute(create: () => OpenApiDocument): RequestHandler {
  let document: string | undefined;
  return (_request, response) => {
    document ??= JSON.stringify(create());
    response.set('Cache-Control', CACHING).type('json').send(document);
  };
}

/** There are no inline scripts or styles, because the page's security policy forbids them. Links are relative, because a proxy may add a prefix. */
const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Meterline API reference</title>
<link rel="icon" href="favicon.ico" type="image/svg+xml">
<link rel="stylesheet" href="docs/swagger-ui.css">
<script src="docs/swagger-ui-bundle.js" defer></script>
<script src="docs/start.js" defer></script>
</head>
<body>
<div id="reference"></div>
<noscript>This page needs JavaScript. <a href="openapi.json">openapi.json</a> has the same content.</noscript>
</body>
</html>
`;

/**
 * Starts Swagger UI with the theme that the user chose in Meterline's web page. Shows amounts with all digits, because Swagger UI itself would
 * read numbers as doubles and round them. Credentials stay in memory, and the security policy allows requests to this service only.
 */
const START = `const looks = new CSSStyleSheet();
looks.replaceSync('.swagger-ui .servers-title, .swagger-ui .servers { display: none } .swagger-ui .opblock-body { overflow-x: auto }');
document.adoptedStyleSheets = [looks];
const system = matchMedia('(prefers-color-scheme: dark)');
const applyTheme = () => {
  let chosen;
  // A browser that blocks site data throws.
  try { chosen = localStorage.getItem('meterline.theme'); } catch {}
  const isDark = chosen ? chosen === 'dark' : system.matches;
  document.documentElement.classList.toggle('dark-mode', isDark);
  document.documentElement.style.colorScheme = isDark ? 'dark' : 'light';
};
applyTheme();
system.addEventListener('change', applyTheme);
const exactNumber = (_key, value, { source }) => (typeof value === 'number' ? JSON.rawJSON(source) : value);
const exactJson = (text) => {
  // Not JSON, or a browser without JSON.rawJSON: shows the text as it is.
  try { return JSON.stringify(JSON.parse(text, exactNumber), null, 2); } catch { return text; }
};
const exactBody = (Body, { React }) => (props) => {
  const exact = /json/i.test(props.contentType) && { content: exactJson(props.content), contentType: 'text/plain' };
  return React.createElement(Body, { ...props, ...exact });
};
const typeScriptOf = (request) => {
  const { url, method, headers, body } = request.toJS();
  return 'const response = await fetch(' + JSON.stringify(url) + ', ' + JSON.stringify({ method, headers, body }, null, 2) + ');\\n' +
    '// The text has all digits of amounts. response.json() would round them.\\n' +
    'console.log(response.status, await response.text());';
};
// Swagger UI fills in the examples of parameters. Only those of required parameters stay, because a filter would change the result.
const withoutOptionalExamples = (update) => (document) => {
  for (const { parameters = [] } of Object.values(document.paths ?? {}).flatMap(Object.values)) {
    for (const parameter of parameters) if (!parameter.required) delete parameter.examples;
  }
  return update(document);
};
// Swagger UI focuses the last credential, but most users need the first one.
const firstFocused = (Popup, { React }) => (props) => {
  React.useEffect(() => document.querySelector('.auth-container input')?.focus(), []);
  return React.createElement(Popup, props);
};
// Swagger UI puts the example of a media type such as application/x-ndjson, a text of several lines, into quotes.
function showTextAsItIs({ fn: { getSampleSchema } }) {
  this.fn.getSampleSchema = (schema, type, config, example) =>
    typeof example === 'string' ? example : getSampleSchema(schema, type, config, example);
}
SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#reference',
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  plugins: [() => ({
    afterLoad: showTextAsItIs,
    wrapComponents: { responseBody: exactBody, authorizationPopup: firstFocused },
    statePlugins: { spec: { wrapActions: { updateJsonSpec: withoutOptionalExamples } } },
    fn: { requestSnippetGenerator_typescript: typeScriptOf },
  })],
  requestSnippetsEnabled: true,
  requestSnippets: {
    generators: { curl_bash: { title: 'curl', syntax: 'bash' }, typescript: { title: 'TypeScript', syntax: 'javascript' } },
    languages: ['curl_bash', 'typescript'],
  },
  validatorUrl: null,
});
`;

const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#2b5fd9"/>' +
  '<path d="M8 23V15M13.5 23V9M19 23v-6M24.5 23V12" stroke="#fff" stroke-width="3" stroke-linecap="round"/></svg>';

const SWAGGER_UI = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));

/** Maps paths to handlers. Every service has these routes, with or without the web page. */
export const DOCS_ROUTES: Readonly<Record<string, RequestHandler>> = {
  '/docs': textRoute('html', PAGE),
  '/docs/start.js': textRoute('js', START),
  '/docs/swagger-ui.css': fileRoute(SWAGGER_UI, 'swagger-ui.css'),
  '/docs/swagger-ui-bundle.js': fileRoute(SWAGGER_UI, 'swagger-ui-bundle.js'),
  '/favicon.ico': (_request, response) => {
    response.set('Cache-Control', CACHING).type('svg').send(ICON);
  },
};

function textRoute(type: string, text: string): RequestHandler {
  const headers = { 'Cache-Control': REVALIDATE, 'Content-Security-Policy': CONTENT_SECURITY_POLICY };
  return (_request, response) => {
    response.set(headers).type(type).send(text);
  };
}
