/** The catalogue of methods as OpenRPC and OpenAPI documents, for programs that make clients. */
import {
  errorCatalogue,
  type MethodDefinition,
  methodPath,
  methods,
  notifications,
} from '@posthouse/protocol';

export interface ApiFacts {
  readonly name: string;
  readonly version: string;
  /** HTTPS base addresses. */
  readonly https: readonly string[];
  readonly wss: readonly string[];
  /** The header with the token of a session. */
  readonly sessionHeader: string;
}

const all = Object.values<MethodDefinition>(methods);

/** Says which session a method needs, and where it is defined. */
function descriptionOf({ session, source, capability }: MethodDefinition): string {
  const who = session === 'none' ? 'No session.' : `Session: ${session}.`;
  const module = capability === undefined ? '' : ` Module ${capability}.`;
  return `${who}${module} Chapter ${source}.`;
}

/** Returns the WebSocket form: JSON-RPC 2.0 with named parameters (02 §2). */
export function openRpc({ name, version, wss }: ApiFacts): object {
  const errors = Object.entries(errorCatalogue).map(([message, { rpc }]) => ({
    code: rpc,
    message,
  }));
  return {
    openrpc: '1.3.2',
    info: { title: name, version },
    servers: wss.map((url, index) => ({ name: `wss ${index + 1}`, url })),
    methods: [
      ...all.map((definition) => ({
        name: definition.name,
        description: descriptionOf(definition),
        paramStructure: 'by-name',
        params: membersOf(definition.params),
        result: { name: 'result', schema: definition.result ?? { type: 'null' } },
        errors,
      })),
      ...Object.values(notifications).map(({ name: topic, params, source }) => ({
        name: topic,
        description: `Notification of the relay, without an answer. Chapter ${source}.`,
        paramStructure: 'by-name',
        params: membersOf(params),
      })),
    ],
  };
}

/** A schema of an object, as far as it is read here. */
interface ObjectSchema {
  readonly properties?: Readonly<Record<string, object>>;
  readonly required?: readonly string[];
  readonly anyOf?: readonly ObjectSchema[];
}

/** Describes each member of the parameters; of alternatives, each member of any. */
function membersOf(schema: ObjectSchema): object[] {
  const forms = schema.anyOf ?? [schema];
  const names = [...new Set(forms.flatMap(({ properties = {} }) => Object.keys(properties)))];
  return names.map((name) => ({
    name,
    required: forms.every(({ required = [] }) => required.includes(name)),
    schema: forms.find(({ properties = {} }) => Object.hasOwn(properties, name))?.properties?.[
      name
    ],
  }));
}

/** Returns the HTTP form: a path for each method, with its verbs (02 §2). */
export function openApi(facts: ApiFacts): object {
  const paths = all
    .filter(({ http }) => http.length > 0)
    .map((definition) => [
      methodPath(definition.name),
      Object.fromEntries(
        definition.http.map((verb) => [verb.toLowerCase(), operationOf(definition, verb)]),
      ),
    ]);
  return {
    openapi: '3.1.0',
    info: { title: facts.name, version: facts.version },
    servers: facts.https.map((url) => ({ url })),
    paths: Object.fromEntries(paths),
    components: {
      securitySchemes: { session: { type: 'apiKey', in: 'header', name: facts.sessionHeader } },
      responses: { error: { description: 'An error', content: jsonOf(errorSchema) } },
    },
  };
}

const errorSchema = {
  type: 'object',
  required: ['code', 'message'],
  properties: {
    code: { type: 'string', enum: Object.keys(errorCatalogue) },
    message: { type: 'string' },
    data: { type: 'object' },
  },
};

const jsonOf = (schema: object) => ({ 'application/json': { schema } });

function operationOf(definition: MethodDefinition, verb: string): object {
  const { name, session, result } = definition;
  const isQuery = verb === 'GET';
  return {
    operationId: definition.http.length > 1 ? `${name}.${verb.toLowerCase()}` : name,
    description: descriptionOf(definition),
    ...(session === 'none' ? {} : { security: [{ session: [] }] }),
    ...(isQuery
      ? {
          parameters: membersOf(definition.params).map((member) => ({ ...member, in: 'query' })),
        }
      : { requestBody: { content: jsonOf(definition.params) } }),
    responses: {
      ...(result === null
        ? { 204: { description: 'Done' } }
        : { 200: { description: 'Done', content: jsonOf(result) } }),
      default: { $ref: '#/components/responses/error' },
    },
  };
}
