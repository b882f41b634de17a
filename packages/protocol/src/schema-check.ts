/**
 * Checks values against schemas: a function for each schema, made of functions for its parts. It
 * compiles no source text, which a strict Content Security Policy forbids (decision 0033). The
 * rules, their order and their messages are those of TypeBox, which the tests compare it with.
 */
import type { TSchema } from 'typebox';

/** The first rule that a value breaks. */
interface Fault {
  /** Names and indexes on the way to the value at fault, with dots; empty for the whole. */
  readonly at: string;
  readonly message: string;
}

/** Returns the first fault of a value, or `undefined`. */
export type SchemaCheck = (value: unknown) => Fault | undefined;

/** What a schema may contain for the check; an unknown keyword would be a rule not checked. */
interface Keywords {
  readonly type?: keyof typeof types;
  readonly required?: readonly string[];
  readonly additionalProperties?: false;
  readonly patternProperties?: Readonly<Record<string, Keywords>>;
  readonly properties?: Readonly<Record<string, Keywords>>;
  readonly minProperties?: number;
  readonly items?: Keywords;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly const?: string | number | boolean | null;
  readonly anyOf?: readonly Keywords[];
}

type JsonRecord = Record<string, unknown>;

const isObject = (value: unknown): value is JsonRecord =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const types = {
  object: isObject,
  array: Array.isArray,
  string: (value: unknown) => typeof value === 'string',
  integer: Number.isInteger,
  number: Number.isFinite,
  boolean: (value: unknown) => typeof value === 'boolean',
  null: (value: unknown) => value === null,
};

/** Keywords that describe and check nothing. */
const annotations = ['title', 'description', 'default', 'examples'];

const known = new Set([
  ...['type', 'required', 'additionalProperties', 'patternProperties', 'properties'],
  ...['minProperties', 'items', 'minItems', 'maxItems', 'minLength', 'maxLength', 'pattern'],
  ...['minimum', 'maximum', 'const', 'anyOf', ...annotations],
]);

const checks = new WeakMap<object, SchemaCheck>();

/**
 * Returns the check of a schema, made at its first use.
 *
 * @throws TypeError for a schema with a keyword that is not checked
 */
export function schemaCheck(schema: TSchema): SchemaCheck {
  let check = checks.get(schema);
  if (check === undefined) {
    check = makeCheck(schema as Keywords);
    checks.set(schema, check);
  }
  return check;
}

function makeCheck(schema: Keywords): SchemaCheck {
  const unknown = Object.keys(schema).find((keyword) => !known.has(keyword));
  if (unknown !== undefined) throw new TypeError(`schema keyword ${unknown} is not checked`);
  const parts = [
    ...(schema.type === undefined ? [] : [typeCheck(schema.type)]),
    ...objectChecks(schema),
    ...arrayChecks(schema),
    ...stringChecks(schema),
    ...numberChecks(schema),
    ...('const' in schema ? [rule((value) => value === schema.const, 'be equal to constant')] : []),
    ...(schema.anyOf === undefined ? [] : [anyOfCheck(schema.anyOf)]),
  ];
  const [only] = parts;
  if (parts.length === 1 && only !== undefined) return only;
  return (value) => {
    for (const part of parts) {
      const fault = part(value);
      if (fault !== undefined) return fault;
    }
    return undefined;
  };
}

/** Makes a check of the value itself, with a fault that is made once. */
function rule(isValid: (value: unknown) => boolean, must: string): SchemaCheck {
  const fault = { at: '', message: `must ${must}` };
  return (value) => (isValid(value) ? undefined : fault);
}

function typeCheck(type: keyof typeof types): SchemaCheck {
  if (!Object.hasOwn(types, type)) throw new TypeError(`schema type ${type} is not checked`);
  return rule(types[type], `be ${type}`);
}

function below(name: string | number, { at, message }: Fault): Fault {
  return { at: at === '' ? `${name}` : `${name}.${at}`, message };
}

function objectChecks(schema: Keywords): SchemaCheck[] {
  const { required = [], properties = {}, patternProperties = {}, minProperties } = schema;
  const patterns = Object.entries(patternProperties).map(
    ([pattern, part]) => [new RegExp(pattern, 'u'), schemaCheck(part)] as const,
  );
  const found: ((value: JsonRecord) => Fault | undefined)[] = [];
  if (required.length > 0) found.push((value) => missing(required, value));
  if (schema.additionalProperties === false) {
    const isNamed = (name: string) =>
      Object.hasOwn(properties, name) || patterns.some(([pattern]) => pattern.test(name));
    found.push((value) => {
      const other = Object.keys(value).find((name) => !isNamed(name));
      return other === undefined ? undefined : { at: other, message: 'schema is false' };
    });
  }
  for (const [pattern, check] of patterns) {
    found.push((value) => {
      for (const name of Object.keys(value)) {
        const fault = pattern.test(name) ? check(value[name]) : undefined;
        if (fault !== undefined) return below(name, fault);
      }
      return undefined;
    });
  }
  for (const [name, part] of Object.entries(properties)) {
    found.push(memberCheck(name, schemaCheck(part), required.includes(name)));
  }
  if (minProperties !== undefined) {
    const check = rule(
      (value) => Object.keys(value as object).length >= minProperties,
      `not have fewer than ${minProperties} properties`,
    );
    found.push(check);
  }
  if (found.length === 0) return [];
  return [
    (value) => {
      if (!isObject(value)) return undefined;
      for (const check of found) {
        const fault = check(value);
        if (fault !== undefined) return fault;
      }
      return undefined;
    },
  ];
}

function missing(required: readonly string[], value: JsonRecord): Fault | undefined {
  for (const name of required) {
    if (Object.hasOwn(value, name)) continue;
    const names = required.filter((one) => !Object.hasOwn(value, one)).join(', ');
    return { at: '', message: `must have required properties ${names}` };
  }
  return undefined;
}

/** Checks one member; an optional one may be absent. */
function memberCheck(name: string, check: SchemaCheck, isRequired: boolean) {
  // A value that lacks the member must not have it of its prototype.
  if (name in Object.prototype) throw new TypeError(`a schema cannot name a member ${name}`);
  return (value: JsonRecord) => {
    const member = value[name];
    if (member === undefined && !isRequired) return undefined;
    const fault = check(member);
    return fault === undefined ? undefined : below(name, fault);
  };
}

function arrayChecks({ items, minItems, maxItems }: Keywords): SchemaCheck[] {
  const found: SchemaCheck[] = [];
  if (items !== undefined) {
    const check = schemaCheck(items);
    found.push((value) => {
      if (!Array.isArray(value)) return undefined;
      for (let index = 0; index < value.length; index += 1) {
        const fault = check(value[index]);
        if (fault !== undefined) return below(index, fault);
      }
      return undefined;
    });
  }
  const length = (isValid: (items: number) => boolean, must: string) =>
    found.push(rule((value) => !Array.isArray(value) || isValid(value.length), must));
  if (minItems !== undefined) {
    length((count) => count >= minItems, `not have fewer than ${minItems} items`);
  }
  if (maxItems !== undefined) {
    length((count) => count <= maxItems, `not have more than ${maxItems} items`);
  }
  return found;
}

function stringChecks({ minLength, maxLength, pattern }: Keywords): SchemaCheck[] {
  const found: SchemaCheck[] = [];
  const text = (isValid: (text: string) => boolean, must: string) =>
    found.push(rule((value) => typeof value !== 'string' || isValid(value), must));
  if (minLength !== undefined) {
    text(({ length }) => length >= minLength, `not have fewer than ${minLength} characters`);
  }
  if (maxLength !== undefined) {
    text(({ length }) => length <= maxLength, `not have more than ${maxLength} characters`);
  }
  if (pattern !== undefined) {
    const expression = new RegExp(pattern, 'u');
    text((value) => expression.test(value), `match pattern "${pattern}"`);
  }
  return found;
}

function numberChecks({ minimum, maximum }: Keywords): SchemaCheck[] {
  const found: SchemaCheck[] = [];
  if (minimum !== undefined) {
    found.push(rule((value) => !((value as number) < minimum), `be >= ${minimum}`));
  }
  if (maximum !== undefined) {
    found.push(rule((value) => !((value as number) > maximum), `be <= ${maximum}`));
  }
  return found;
}

/** One of several schemas; the fault is that of the first. */
function anyOfCheck(schemas: readonly Keywords[]): SchemaCheck {
  const branches = schemas.map(schemaCheck);
  return (value) => {
    let first: Fault | undefined;
    for (const branch of branches) {
      const fault = branch(value);
      if (fault === undefined) return undefined;
      first ??= fault;
    }
    return first;
  };
}
