; The installer for Windows: for one user, without an administrator's rights. `cargo xtask dist` names
; VERSION, FOLDER (what is installed) and INSTALLER (what is written).
;
; PATH is left alone: an installer that changes it can lose what was in it. The menu gets a command line
; that finds the program, and App Paths lets Start and Run find it.

Target amd64-unicode
Name "Motley ${VERSION}"
OutFile "${INSTALLER}"
InstallDir "$LOCALAPPDATA\Programs\Motley"
RequestExecutionLevel user
SetCompressor /SOLID lzma

!define LISTED "Software\Microsoft\Windows\CurrentVersion\Uninstall\Motley"
!define FOUND "Software\Microsoft\Windows\CurrentVersion\App Paths\motley.exe"

Page directory
Page instfiles
UninstPage uninstConfirm
UninstPage instfiles

Section
    SetOutPath "$INSTDIR"
    File "${FOLDER}/*"
    WriteUninstaller "$INSTDIR\uninstall.exe"
    WriteRegStr HKCU "${FOUND}" "" "$INSTDIR\motley.exe"
    WriteRegStr HKCU "${LISTED}" "DisplayName" "Motley"
    WriteRegStr HKCU "${LISTED}" "DisplayVersion" "${VERSION}"
    WriteRegStr HKCU "${LISTED}" "InstallLocation" "$INSTDIR"
    WriteRegStr HKCU "${LISTED}" "UninstallString" '"$INSTDIR\uninstall.exe"'
    WriteRegDWORD HKCU "${LISTED}" "NoModify" 1
    WriteRegDWORD HKCU "${LISTED}" "NoRepair" 1
    SetOutPath "$PROFILE"
    CreateShortcut "$SMPROGRAMS\Motley.lnk" "$SYSDIR\cmd.exe" \
        '/k "set PATH=$INSTDIR;%PATH% && motley --help"' "$INSTDIR\motley.exe"
SectionEnd

Section "Uninstall"
    Delete "$SMPROGRAMS\Motley.lnk"
    DeleteRegKey HKCU "${FOUND}"
    DeleteRegKey HKCU "${LISTED}"
    Delete "$INSTDIR\motley.exe"
    Delete "$INSTDIR\LICENSE-APACHE.txt"
    Delete "$INSTDIR\LICENSE-MIT.txt"
    Delete "$INSTDIR\LICENSE-llama.cpp.txt"
    Delete "$INSTDIR\motley.cdx.json"
    Delete "$INSTDIR\uninstall.exe"
    RMDir "$INSTDIR"
SectionEnd
