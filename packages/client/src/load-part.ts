import { ClientError, isClientError } from './errors.ts';

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

/** Goes on without a part that cannot be loaded now. @throws any other error */
export function unlessMissing(error: unknown): undefined {
  if (!isClientError(error, 'part_unavailable')) throw error;
}

/** Imports the Markdown parser. @throws ClientError `part_unavailable` */
export const loadMarkdown = () => loadPart(() => import('@posthouse/protocol/markdown'));
