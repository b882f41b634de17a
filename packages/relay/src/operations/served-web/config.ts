/** Checks the shape of the `config.json` that the messenger reads at its start. */
import { checkSchema, Type } from '@posthouse/protocol';
import { isPublicNode } from '../../web/index.ts';

const text = Type.String({ minLength: 1 });

/** As the messenger reads it (packages/web `src/app-config.ts`). */
const AppConfig = Type.Object({
  name: text,
  relayId: text,
  context: text,
  word: Type.Optional(text),
  registry: Type.Union([
    Type.Object({ nodes: Type.Array(Type.String(), { minItems: 1 }) }),
    Type.Object({ relays: Type.Array(Type.Object({})) }),
  ]),
  needsInvite: Type.Boolean(),
  attachmentBytes: Type.Optional(Type.Integer({ minimum: 0 })),
});

/** Finds what is wrong, in words that follow the file's name. */
export function configDifferences(content: Uint8Array): string[] {
  try {
    const config: unknown = JSON.parse(Buffer.from(content).toString());
    checkSchema(AppConfig, config);
    const nodes = 'nodes' in config.registry ? config.registry.nodes : [];
    if (nodes.every((node) => URL.canParse(node) && isPublicNode(node))) return [];
    return ['names a node of the chain that is not of the form https://host'];
  } catch {
    return ['is not a configuration of the messenger'];
  }
}
