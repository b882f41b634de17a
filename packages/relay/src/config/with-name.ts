import { systemFault } from './system-fault.ts';

/**
 * Runs work whose error an operator has to understand: its message begins with the name of the
 * setting or file that is wrong, and has what to do if the system refused something. The error keeps
 * its code.
 *
 * @param hint what to do about any other error
 */
export async function withName<T>(name: string, work: () => Promise<T>, hint = ''): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException;
    const words = systemFault(error) ?? `${message}${hint && `; ${hint}`}`;
    throw Object.assign(new Error(`${name}: ${words}`, { cause: error }), { code });
  }
}
