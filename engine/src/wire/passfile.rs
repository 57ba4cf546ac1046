//! libpq's password file: `host:port:database:user:password` lines, first match wins.

use std::ffi::{CStr, CString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The password for host, port, database and user; None where the file has none.
pub fn look_up(file: &Path, wanted: [&str; 4]) -> Option<String> {
    find(&std::fs::read_to_string(file).ok()?, wanted)
}

/// Why a file that is there may not be used. As libpq: it must be a plain file that others cannot read.
pub fn problem_of(file: &Path) -> Option<String> {
    let facts = std::fs::metadata(file).ok()?;
    let shown = file.display();
    if !facts.is_file() {
        return Some(format!("the password file {shown} is not a plain file"));
    }
    let open = facts.permissions().mode() & 0o077 != 0;
    open.then(|| {
        format!("the password file {shown} is not used, because others may read it (chmod 600)")
    })
}

/// The password in a file's text.
fn find(text: &str, wanted: [&str; 4]) -> Option<String> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .find_map(|line| {
            let mut fields = split(line);
            let password = (fields.len() == 5).then(|| fields.pop())??;
            let fits = fields
                .iter()
                .zip(wanted)
                .all(|(field, wanted)| field == "*" || field == wanted);
            fits.then_some(password)
        })
}

/// The fields of a line; a backslash takes the next character as it is.
fn split(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            ':' if fields.len() < 5 => fields.push(String::new()),
            '\\' => fields
                .last_mut()
                .expect("never empty")
                .extend(characters.next()),
            other => fields.last_mut().expect("never empty").push(other),
        }
    }
    fields
}

/// Name and home of the account this process runs as.
pub fn account() -> Option<(String, PathBuf)> {
    let mut buffer = vec![0_u8; 16 << 10];
    // SAFETY: passwd is plain data, filled by the call below.
    let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
    let mut found = std::ptr::null_mut();
    // SAFETY: all pointers are to our own memory, with the buffer's true length.
    let status = unsafe {
        libc::getpwuid_r(
            libc::geteuid(),
            &raw mut entry,
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            &raw mut found,
        )
    };
    if status != 0 || found.is_null() {
        return None;
    }
    // SAFETY: on success both point to zero-terminated text inside `buffer`.
    let (name, home) = unsafe { (CStr::from_ptr(entry.pw_name), CStr::from_ptr(entry.pw_dir)) };
    Some((
        name.to_string_lossy().into_owned(),
        PathBuf::from(home.to_string_lossy().into_owned()),
    ))
}

/// The number of an operating system's user.
pub fn user_id(name: &str) -> Option<libc::uid_t> {
    let name = CString::new(name).ok()?;
    let mut buffer = vec![0_u8; 16 << 10];
    // SAFETY: passwd is plain data, filled by the call below.
    let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
    let mut found = std::ptr::null_mut();
    // SAFETY: all pointers are to our own memory, with the buffer's true length.
    let status = unsafe {
        libc::getpwnam_r(
            name.as_ptr(),
            &raw mut entry,
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            &raw mut found,
        )
    };
    (status == 0 && !found.is_null()).then_some(entry.pw_uid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_fits_wins() {
        let text = "# host:port:db:user:password\nh:1:*:u:a\\:b\n*:*:*:*:c\n";
        assert_eq!(Some("a:b".to_string()), find(text, ["h", "1", "d", "u"]));
        assert_eq!(Some("c".to_string()), find(text, ["h", "2", "d", "u"]));
        assert_eq!(None, find("h:1:d:u\n", ["h", "1", "d", "u"]));
    }

    #[test]
    fn this_process_has_an_account() {
        let (name, _) = account().unwrap();
        // SAFETY: no pointers.
        assert_eq!(Some(unsafe { libc::geteuid() }), user_id(&name));
        assert_eq!(None, user_id("no such user"));
    }
}
