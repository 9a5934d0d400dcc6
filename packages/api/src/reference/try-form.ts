/**
 * The form that sends a request of an operation. It is hidden until the page's script shows it (packages/dashboard/src/reference),
 * which reads from it what goes where: `data-in` is the place, `data-values` how several values are written.
 */
import type { JsonSchema, Parameter } from '../openapi/model.js';
import { exampleRequests, type Place } from '../openapi/requests.js';
import { type Html, html } from './html.js';
import { isSchema } from './schema-table.js';

export function tryForm(place: Place): Html {
  const { path, method, operation } = place;
  const [example] = exampleRequests(place);
  // Nothing is filled in where something would change: nobody revokes the key of an example by accident.
  const filled = (name: string) => (method === 'get' ? example?.parameters[name] : undefined);
  const id = `try-${operation.operationId}`;
  return html`<details class="try" hidden><summary>Try it</summary>
<form data-method="${method.toUpperCase()}" data-path="${path}" novalidate>
${operation.security === undefined && credentialField(id)}
<div class="fields">${operation.parameters.map((parameter) => field(id, parameter, parameter.required ? filled(parameter.name) : undefined))}</div>
${operation.requestBody !== undefined && bodyField(id, example?.body)}
<p class="actions"><button class="${method === 'get' ? 'primary' : 'primary changes'}">Send ${method.toUpperCase()}</button>
<span class="hint">${method === 'get' ? 'To this service.' : 'To this service. It changes something.'}</span></p>
</form>
<div class="outcome" role="status"></div></details>`;
}

function credentialField(id: string): Html {
  return html`<div class="field"><label for="${id}-credential">API key or access token</label>
<input id="${id}-credential" class="credential" type="password" autocomplete="off" spellcheck="false" placeholder="mlk_…"></div>`;
}

function bodyField(id: string, example: unknown): Html {
  const text = example === undefined ? '' : JSON.stringify(example, null, 2);
  return html`<div class="field"><label for="${id}-body">Body, as JSON</label>
<textarea id="${id}-body" name="body" rows="${text.split('\n').length}" spellcheck="false">${text}</textarea></div>`;
}

function field(form: string, parameter: Parameter, value: unknown): Html {
  const { name, in: place, required, explode, schema } = parameter;
  const id = `${form}-${name}`;
  const label = html`${name}${required && html` <span class="needed">required</span>`}`;
  const items = isSchema(schema['items']) ? schema['items'] : undefined;
  if (items && Array.isArray(items['enum'])) {
    return html`<fieldset class="field wide" data-name="${name}" data-in="${place}" data-values="${explode ? 'each' : 'commas'}"><legend>${label}</legend>
${choices(items).map((choice) => html`<label><input type="checkbox" value="${choice}"> ${choice}</label>`)}</fieldset>`;
  }
  return html`<div class="field" data-name="${name}" data-in="${place}" data-values="${items ? 'each' : 'one'}"><label for="${id}">${label}</label>
${items ? listControl(id) : control(id, schema, value)}</div>`;
}

function listControl(id: string): Html {
  return html`<textarea id="${id}" rows="1" spellcheck="false" placeholder="one value a line"></textarea>`;
}

function control(id: string, schema: JsonSchema, value: unknown): Html {
  const hint = schema['default'] === undefined ? 'left out' : `default: ${String(schema['default'])}`;
  const options = schema['type'] === 'boolean' ? ['true', 'false'] : choices(schema);
  if (options.length > 0) {
    return html`<select id="${id}"><option value="">${hint}</option>
${options.map((option) => html`<option>${option}</option>`)}</select>`;
  }
  return html`<input id="${id}" spellcheck="false" autocomplete="off" value="${value === undefined ? '' : String(value)}" placeholder="${hint}" data-format="${String(schema['format'] ?? schema['type'])}">`;
}

function choices({ enum: values }: JsonSchema): string[] {
  return Array.isArray(values) ? values.map(String) : [];
}
