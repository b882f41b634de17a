import { ClientError } from './errors.ts';

/**
 * Imports a part of the client that is not loaded at the start. Each call tries again what failed.
 *
 * @throws ClientError `part_unavailable`
 */
export async function loadPart<Part>(load: () => Promise<Part>): Promise<Part> {
  try {
    return await load();
  } catch (cause) {
    throw new ClientError(
      'part_unavailable',
      'a part of the app cannot be loaded: try again online, or start the app anew',
      { cause },
    );
  }
}

/** Imports the Markdown parser. @throws ClientError `part_unavailable` */
export const loadMarkdown = () => loadPart(() => import('@posthouse/protocol/markdown'));
