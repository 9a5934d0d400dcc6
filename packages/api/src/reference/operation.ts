/** An operation: what it does and takes, its examples in three languages, and a form to try it. */
import type { JsonSchema, Operation, Parameter, RequestBody, Response } from '../openapi/model.js';
import { type ExampleRequest, exampleRequests, type Place, successOf } from '../openapi/requests.js';
import { codeOf, LANGUAGES } from './code.js';
import { type Html, html, phrase, prose } from './html.js';
import { allowedValues, typeOf } from './schema-table.js';
import { tryForm } from './try-form.js';

export function operationSection(place: Place): Html {
  const { path, method, operation } = place;
  const { operationId, summary, description, parameters, requestBody, responses } = operation;
  const success = successOf(operation);
  return html`<section class="operation" id="${operationId}">
<h3><a href="#${operationId}">${summary}</a></h3>
<p class="route">${verb(method)}<span>${path}</span></p>
<div class="columns"><div>
${prose(description)}
${requestBody !== undefined && html`<h4>Body</h4>${bodyTypes(requestBody)}`}
<h4>Answer</h4>
${success !== undefined && answer(success)}
<h4>Errors</h4>
<p>${errorLinks(responses)}</p>
</div><div>
${exampleRequests(place).map((request, index) => example(operationId, request, index))}
</div></div>
${parameters.length > 0 && html`<h4>Parameters</h4>${parameterTable(summary, parameters)}`}
${tryForm(place)}
</section>`;
}

/** What the body is in each format. */
function bodyTypes({ content }: RequestBody): Html[] {
  const formats = Object.entries(content);
  return formats.map(([type, { schema }]) => {
    const name = formats.length === 1 ? 'JSON' : type;
    return html`<p>${name}: ${typeOf(schema)}.</p>`;
  });
}

/** `GET`, coloured by what it does. */
export function verb(method: string, text = method.toUpperCase()): Html {
  return html`<span class="verb ${method}">${text}</span>`;
}

/** Radio buttons and the style sheet choose the language, so that it works without a script, which keeps the choice. */
function example(operationId: string, request: ExampleRequest, index: number): Html {
  const group = `${operationId}-${index}`;
  return html`<details class="example"${index === 0 && html` open`}><summary>${phrase(request.summary)}</summary>
<div class="codes"><div class="languages" role="radiogroup" aria-label="Language: ${request.summary}">
${LANGUAGES.map(
  (language, at) =>
    html`<label><input type="radio" name="${group}" value="${language}"${at === 0 && html` checked`}>${language}</label>`,
)}<button type="button" class="quiet copy" hidden>Copy</button></div>
${LANGUAGES.map(
  (language) => html`<pre tabindex="0" data-language="${language}">${codeOf(language, operationId, request)}</pre>`,
)}</div>
${request.answer !== undefined && html`<p class="hint">Answer</p><pre class="answer" tabindex="0">${JSON.stringify(request.answer, null, 2)}</pre>`}</details>`;
}

function parameterTable(summary: string, parameters: readonly Parameter[]): Html {
  return html`<div class="scroll" role="region" aria-label="Parameters: ${summary}" tabindex="0"><table>
<thead><tr><th>Name</th><th>In</th><th>Type</th><th>Meaning</th></tr></thead>
<tbody>${parameters.map(
    ({ name, in: place, required, schema, description }) => html`<tr>
<td>${name}${required && html` <span class="needed">required</span>`}</td><td>${place}</td>
<td><span class="type">${typeOf(schema)}</span></td><td>${phrase(description)}${allowedValues(schema)}${defaultValue(schema)}</td></tr>`,
  )}</tbody></table></div>`;
}

function defaultValue({ default: value }: JsonSchema): Html {
  return value === undefined ? html`` : html`<span class="values">default: ${String(value)}</span>`;
}

function answer(response: Response): Html {
  const schema = response.content?.['application/json'].schema;
  return html`<p>${phrase(response.description)}${schema !== undefined && html` ${typeOf(schema)}.`}</p>`;
}

function errorLinks(responses: Operation['responses']): Html[] {
  const links = Object.entries(responses).flatMap(([status, response]) => {
    if (!('$ref' in response)) return [];
    const label = status === 'default' ? 'others' : status;
    return [html`<a href="#error-${response.$ref.split('/').at(-1)}">${label}</a>`];
  });
  return links.flatMap((link, index) => (index === 0 ? [link] : [html`, `, link]));
}
