import { checkSchema, ProtocolError, type TSchema } from '@posthouse/protocol';
import { RelayConfig } from './schema.ts';

/** One leaf of the configuration's schema. */
export interface Setting {
  /** Dotted: `limits.pageSize`. */
  readonly path: string;
  /** `POSTHOUSE_LIMITS_PAGE_SIZE`. */
  readonly variable: string;
  readonly meaning: string;
  /** `undefined` if there is none. */
  readonly default: unknown;
  readonly schema: TSchema;
}

interface Node {
  readonly type?: string;
  readonly properties?: Record<string, TSchema>;
  readonly description?: string;
  readonly default?: unknown;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly anyOf?: readonly { readonly const?: unknown; readonly type?: string }[];
}

/** All settings, in the order of the schema. */
export const settings: readonly Setting[] = leaves(RelayConfig, []);

/** Returns the default of a setting; `undefined` if there is none. */
export function defaultOf(path: string): unknown {
  return settings.find((setting) => setting.path === path)?.default;
}

function leaves(schema: TSchema, path: readonly string[]): Setting[] {
  return Object.entries((schema as Node).properties ?? {}).flatMap(([name, child]) => {
    const node = child as Node;
    const at = [...path, name];
    if (node.type === 'object') return leaves(child, at);
    return [
      {
        path: at.join('.'),
        variable: `POSTHOUSE_${at.map(upperSnake).join('_')}`,
        meaning: node.description ?? '',
        default: node.default,
        schema: child,
      },
    ];
  });
}

function upperSnake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
}

/** Returns whether a value is valid for a setting. */
export function fits(setting: Setting, value: unknown): boolean {
  try {
    checkSchema(setting.schema, value);
    return true;
  } catch (error) {
    if (error instanceof ProtocolError) return false;
    throw error;
  }
}

/** The unit of a number, with which its meaning begins. */
const units = /^(?:Milliseconds|Seconds|Bytes)\b/;

/** Describes the values that a setting accepts. */
export function expected({ schema, meaning }: Setting): string {
  const node = schema as Node;
  if (node.anyOf?.some(({ type }) => type === 'object')) {
    return isSwitch(schema) ? 'true, false or an object' : 'a text or an object';
  }
  if (node.anyOf !== undefined) {
    return `one of ${node.anyOf.map((option) => String(option.const)).join(', ')}`;
  }
  switch (node.type) {
    case 'integer': {
      const unit = units.exec(meaning)?.[0].toLowerCase();
      const to = node.maximum === Number.MAX_SAFE_INTEGER ? '' : ` to ${node.maximum}`;
      return `an integer from ${node.minimum}${to}${unit === undefined ? '' : ` (${unit})`}`;
    }
    case 'boolean':
      return 'true or false';
    case 'array':
      return 'a list of texts';
    default:
      return node.pattern === undefined ? 'a text' : `a text that matches ${node.pattern}`;
  }
}

/** Parses a text of the environment or the command line. */
export function fromText({ schema }: Setting, text: string): unknown {
  const isObject = (schema as Node).anyOf?.some(({ type }) => type === 'object') === true;
  if (isObject && (text.startsWith('{') || isSwitch(schema))) return jsonOrText(text);
  switch ((schema as Node).type) {
    case 'integer':
      return /^-?[0-9]+$/.test(text) ? Number(text) : text;
    case 'boolean':
      return text === 'true' ? true : text === 'false' ? false : text;
    case 'array':
      return text
        .split(',')
        .map((item) => item.trim())
        .filter((item) => item !== '');
    default:
      return text;
  }
}

/** Whether a setting may be true or false besides something else. */
function isSwitch(schema: TSchema): boolean {
  return (schema as Node).anyOf?.some(({ type }) => type === 'boolean') === true;
}

function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
