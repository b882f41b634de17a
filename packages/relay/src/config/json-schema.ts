import { RelayConfig } from './schema.ts';

/** Returns the JSON Schema of a configuration file: every key is optional, unknown keys are errors. */
export function configSchemaText(): string {
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Posthouse relay',
    ...schemaOfFile(),
  };
  return `${JSON.stringify(schema, undefined, 2)}\n`;
}

/** Adds `$schema`, with which files name their schema for editors. */
function schemaOfFile(): object {
  const root = optional(RelayConfig) as { properties: object };
  return { ...root, properties: { $schema: { type: 'string' }, ...root.properties } };
}

function optional(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(optional);
  if (typeof value !== 'object' || value === null) return value;
  const { required: _, ...node } = value as Record<string, unknown>;
  const copy = Object.fromEntries(Object.entries(node).map(([key, part]) => [key, optional(part)]));
  return node.type === 'object' ? { ...copy, additionalProperties: false } : copy;
}
